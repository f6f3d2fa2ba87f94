//! The twin's own client, for finding a daemon and for the stand-in runpodctl.

use serde_json::Value;
use std::time::Duration;

/// One request to a local cloud: its status and JSON body.
///
/// # Errors
/// When `url` is not on loopback, nobody answers in time, or the answer is not a local cloud's.
pub async fn request(
    method: &str,
    url: &str,
    path: &str,
    key: &str,
    body: Option<Value>,
) -> Result<(u16, Value), String> {
    if !url.starts_with("http://127.0.0.1:") {
        return Err(format!("{url} is not the address of a local cloud"));
    }
    // The HTTP client wants a TLS provider to be chosen, even where it speaks none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(20))
        .user_agent(concat!("podtether/", env!("CARGO_PKG_VERSION"), " (local)"))
        .build()
        .map_err(|error| error.to_string())?;
    let method = method.parse::<reqwest::Method>().map_err(|error| error.to_string())?;
    let mut request = client.request(method, format!("{url}{path}")).bearer_auth(key);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.map_err(|error| error.to_string())?;
    if !response.headers().contains_key(super::api::LOCAL_HEADER) {
        return Err(format!("what answers at {url} is not a local cloud"));
    }
    let status = response.status().as_u16();
    let bytes = response.bytes().await.map_err(|error| error.to_string())?;
    Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}
