//! The fallback where one side has no rsync (D05): one tar stream over SSH into the same staging
//! folder, under the same checks. It cannot resume.

use super::stream_mark::{AfterMark, behind_mark};
use super::transport::{Moved, stalled};
use super::{Progress, PullRequest, TransferError};
use crate::domain::RemoteCommand;
use crate::pod::ssh::{Connection, Tail};
use crate::pod::{ShellError, ShellErrorKind};
use bytes::Bytes;
use russh::ChannelMsg;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// Receives what the file `list` names into `tree`; returns the bytes that came.
pub(super) async fn receive(
    request: &PullRequest,
    list: &Path,
    tree: &Path,
    of: Progress,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<u64, TransferError> {
    let names =
        std::fs::read(list).map_err(|error| TransferError::local("reading", list, error))?;
    if names.is_empty() {
        return Ok(0);
    }
    let tuning = request.tuning.clone().for_transfer();
    let connection = Connection::connect_pinned(&request.target, &tuning).await?;
    let words = ["tar", "-C", &request.remote_dir, "-cf", "-", "--null", "-T", "-"];
    let remote = RemoteCommand::new(words).to_wire();
    let running = connection
        .start(behind_mark(remote.as_bytes()), "tar")
        .await
        .map_err(|not_started| not_started.0)?;
    let fault = |kind, detail: String| {
        TransferError::Shell(ShellError { kind, tried: connection.tried("tar"), detail })
    };
    let Some(mut ends) = running.into_ends() else {
        return Err(fault(ShellErrorKind::Lost, connection.lost()));
    };
    #[expect(clippy::disallowed_methods, reason = "the local tar unpacks what the pod's tar sends")]
    let mut command = Command::new("tar");
    // Both GNU's and the BSDs' refuse names that lead out and do not write through links.
    command
        .args(["-xf", "-", "--no-same-owner", "--no-same-permissions", "-C"])
        .arg(tree)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut tar = command
        .spawn()
        .map_err(|error| TransferError::LocalDisk { detail: format!("starting tar: {error}") })?;
    let (Some(mut input), Some(mut said)) = (tar.stdin.take(), tar.stderr.take()) else {
        return Err(TransferError::LocalDisk { detail: "tar has no pipes".to_owned() });
    };
    let mut local_words = Tail::new(2000);
    let collect = async {
        let mut chunk = vec![0; 4 << 10];
        while let Ok(read @ 1..) = said.read(&mut chunk).await {
            local_words.push(&chunk[..read]);
        }
    };

    let writer = ends.writer;
    let feed = async {
        let _ = writer.data_bytes(Bytes::from(names)).await;
        let _ = writer.eof().await;
        Ok(())
    };
    let moved = Moved::default();
    let mut mark = AfterMark::default();
    let mut remote_words = Tail::new(2000);
    let pump = async {
        let mut code = None;
        loop {
            match ends.reader.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    let bytes = moved.add_from_pod(data.len());
                    let data = mark
                        .take(data)
                        .map_err(|detail| fault(ShellErrorKind::Handshake, detail))?;
                    if input.write_all(&data).await.is_err() {
                        // The local tar has ended; its own words say why.
                        return Ok(Some(0));
                    }
                    progress(Progress { bytes: bytes.min(of.total_bytes), ..of });
                }
                Some(ChannelMsg::ExtendedData { data, .. }) => remote_words.push(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => code = Some(exit_status),
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
        }
        let _ = input.shutdown().await;
        drop(input);
        Ok(code)
    };
    let pump = async {
        tokio::select! {
            code = pump => code,
            () = stalled(&moved, request.stall) => Err(fault(
                ShellErrorKind::Lost,
                format!("no progress for {} s", request.stall.as_secs_f32()),
            )),
        }
    };
    // A stalled pump ends the wait for the local tar too.
    let (code, (), (), ended) = tokio::try_join!(
        pump,
        feed,
        async {
            collect.await;
            Ok(())
        },
        async {
            tar.wait().await.map_err(|error| TransferError::LocalDisk {
                detail: format!("waiting for tar: {error}"),
            })
        },
    )?;
    connection.disconnect().await;
    let program = |code, meaning, detail: Tail| TransferError::Program {
        program: "tar".to_owned(),
        code,
        meaning,
        detail: detail.finish().text().trim().to_owned(),
    };
    match code {
        _ if !ended.success() => {
            let detail = local_words.finish().text().trim().to_owned();
            Err(TransferError::LocalDisk { detail: format!("tar: {detail}") })
        }
        // 1: some files changed while they were read, 2: some vanished. The pod's list tells.
        Some(0..=2) => Ok(moved.received()),
        Some(127) => Err(program(127, "the pod has neither rsync nor tar", remote_words)),
        Some(code) => {
            let code = i32::try_from(code).unwrap_or(i32::MAX);
            Err(program(code, "the pod's tar failed", remote_words))
        }
        None => Err(fault(ShellErrorKind::Lost, connection.lost())),
    }
}
