//! Every answer of the local cloud against the provider's own OpenAPI document.
