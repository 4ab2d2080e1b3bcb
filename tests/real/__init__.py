"""The application against a real language model: `make real-model`, docs/real-model.md."""
