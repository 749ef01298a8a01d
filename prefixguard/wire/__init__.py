"""API formats: a request to a prompt, a reply to segments, a stream to the response it adds up to."""
