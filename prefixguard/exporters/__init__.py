"""What was recorded and found, in other tools' formats: OpenTelemetry spans and metrics, traces of hashes."""
