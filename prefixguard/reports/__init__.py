"""Reports: what the analysis found, for people and for programs. One module or package per format."""
