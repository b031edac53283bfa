"""The checker's rules for Cepton streams: STDV points and INFZ information."""
