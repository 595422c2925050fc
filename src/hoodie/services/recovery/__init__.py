"""Recovery that a user asks for: take back an instant that is pending."""
