"""The API that clients of OpenAI's speak, in front of the engines of endpoints."""
