-- Tokens of an account, for the list of accounts.
CREATE INDEX tokens_by_account ON tokens (account_id);
