//! An HTTP server on loopback that answers from a script and keeps what it was asked. Written on
//! the bare socket, since its faults are those of sockets: cut off before or within an answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// Path and query as they stood in the request line.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub connection: usize,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// Query parameters, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        let url = reqwest::Url::parse(&format!("http://x{}", self.target)).unwrap();
        url.query_pairs().into_owned().collect()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What to do with the next request.
#[derive(Clone, Debug)]
pub enum Reply {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Read the whole request, then close the connection.
    Drop,
    /// Announce this body, send half of it, then close the connection.
    CutOff {
        status: u16,
        body: String,
    },
    /// Read the whole request, then say nothing.
    Silence,
}

impl Reply {
    pub fn json(status: u16, body: &str) -> Self {
        Self::Answer {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.into(),
        }
    }

    pub fn plain(status: u16, body: &str) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.into() }
    }

    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }
}

/// The server; it goes away with the runtime of the test.
pub struct Server {
    pub base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let script: Arc<Mutex<VecDeque<Reply>>> =
            Arc::new(Mutex::new(script.into_iter().collect()));
        let seen = asked.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(stream, connection, script.clone(), seen.clone()));
            }
        });
        Self { base, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    connection: usize,
    script: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream, connection).await {
        let is_delete = request.method == "DELETE";
        asked.lock().unwrap().push(request);
        // 418: a kind of answer that nothing asks again after.
        let ended = Reply::plain(418, "the script has ended");
        let reply = script.lock().unwrap().pop_front().unwrap_or(ended);
        match reply {
            Reply::Answer { status, headers, body } => {
                let mut head = format!("HTTP/1.1 {status} X\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                if status != 204 {
                    head.push_str(&format!("content-length: {}\r\n", body.len()));
                }
                assert!(!(is_delete && status == 204 && !body.is_empty()));
                let all = format!("{head}\r\n{body}");
                if stream.write_all(all.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::CutOff { status, body } => {
                let half = &body[..body.len() / 2];
                let all =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{half}", body.len());
                let _ = stream.write_all(all.as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Drop => return,
            Reply::Silence => {
                // Holds the connection until the client goes away.
                let _ = stream.read_u8().await;
                return;
            }
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>, connection: usize) -> Option<Asked> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut asked = Asked { method, target, headers, body: Vec::new(), connection };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body = vec![0; length];
    stream.read_exact(&mut asked.body).await.ok()?;
    Some(asked)
}
