"""The way in: due feeds are visited politely, and what they bring is committed."""
