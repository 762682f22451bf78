def run(name: str) -> dict:
    return {"greeting": f"Hello, {name}!"}
