"""A tool with a parameter whose name some model providers do not take, and one that every provider takes."""
from common import serve, text, tool

TOP = {"type": "object", "properties": {"$top": {"type": "integer"}}, "required": ["$top"]}

serve(lambda: [tool("page", schema=TOP), tool("all")], lambda name, args, number: text("called " + name))
