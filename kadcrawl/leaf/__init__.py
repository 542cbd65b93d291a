"""A leaf owns nothing and listens on nothing: it borrows work from full peers (P3)."""
