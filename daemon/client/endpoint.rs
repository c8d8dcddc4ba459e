//! `stats --http`: answers the HTTP request on standard input. zramd-metrics.socket starts it for each connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use engine::Error;
use logic::error::ErrorKind;
use logic::exit::ExitStatus;

/// Maximum length of a request.
const LIMIT: usize = 8 << 10;
/// Time for a request and its answer.
const TIME: Duration = Duration::from_secs(5);
/// Prometheus' text format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers the request on standard input with the text for `GET /metrics`, and with an error for every other one.
pub fn run(text: impl FnOnce() -> Result<String, Error>) -> Result<ExitStatus, Error> {
    let socket = io::stdin().as_fd().try_clone_to_owned();
    let stream = socket.map(TcpStream::from).map_err(|error| Error::failed(error.to_string()))?;
    if stream.set_read_timeout(Some(TIME)).is_err() {
        let message = "standard input is not a socket: run `systemctl start zramd-metrics.socket`";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    answer(stream, TIME, text)
}

fn answer(
    mut stream: TcpStream,
    time: Duration,
    text: impl FnOnce() -> Result<String, Error>,
) -> Result<ExitStatus, Error> {
    let status = request(&mut stream, time).and_then(|request| judge(&request));
    let (status, kind, body, result) = match status.map(|()| text()) {
        Ok(Ok(text)) => ("200 OK", FORMAT, text, Ok(ExitStatus::Success)),
        Ok(Err(error)) => refusal("500 Internal Server Error", Err(error)),
        Err(status) => refusal(status, Ok(ExitStatus::Success)),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nAllow: GET\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A client that does not read the answer, or has gone, is not an error of this program.
    stream.set_write_timeout(Some(time)).ok();
    stream.write_all((head + &body).as_bytes()).and_then(|()| stream.shutdown(Shutdown::Write)).ok();
    result
}

fn refusal<T>(status: &'static str, result: T) -> (&'static str, &'static str, String, T) {
    (status, "text/plain; charset=utf-8", format!("{status}\n"), result)
}

/// Reads the head of a request, or returns the status for one that is too long, too slow or incomplete.
fn request(stream: &mut TcpStream, time: Duration) -> Result<String, &'static str> {
    let begun = Instant::now();
    let mut head = Vec::new();
    let mut buffer = [0; LIMIT];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err("408 Request Timeout");
        }
        stream.set_read_timeout(Some(left)).ok();
        match stream.read(&mut buffer[head.len()..]) {
            Ok(0) if head.len() == LIMIT => return Err("431 Request Header Fields Too Large"),
            Ok(0) => return Err("400 Bad Request"),
            Ok(count) => head.extend_from_slice(&buffer[head.len()..][..count]),
            // At the time limit; the next round returns.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return Err("400 Bad Request"),
        }
    }
    String::from_utf8(head).map_err(|_| "400 Bad Request")
}

/// Whether it is `GET /metrics`; otherwise the status.
fn judge(request: &str) -> Result<(), &'static str> {
    let line = request.split("\r\n").next().unwrap_or_default();
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err("400 Bad Request");
    };
    match (method, target) {
        _ if !version.starts_with("HTTP/1.") => Err("400 Bad Request"),
        ("GET", "/metrics") => Ok(()),
        (_, "/metrics") => Err("405 Method Not Allowed"),
        _ => Err("404 Not Found"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    /// The answer to these bytes, within this time; the client then closes its side, or waits.
    fn asked(bytes: &[u8], time: Duration, closes: bool) -> (Result<ExitStatus, Error>, String) {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        if closes {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let server = TcpStream::from(OwnedFd::from(server));
        let answering = thread::spawn(move || answer(server, time, || Ok("zramd_problems 0\n".to_owned())));
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        (answering.join().unwrap(), text)
    }

    fn status(request: &[u8]) -> String {
        let (result, text) = asked(request, TIME, true);
        assert_eq!(result.unwrap(), ExitStatus::Success);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{text}");
        assert!(!body.contains("zramd"), "{text}");
        assert!(head.contains("\r\nAllow: GET\r\n"), "{text}");
        head.split(' ').nth(1).unwrap().to_owned()
    }

    #[test]
    fn only_get_metrics_is_answered() {
        let (result, text) = asked(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", TIME, false);
        assert_eq!(result.unwrap(), ExitStatus::Success);
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nAllow: GET\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: 17\r\nConnection: close\r\n\r\nzramd_problems 0\n"
        );
        for (request, expected) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /metrics/../x HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "405"),
            (b"HEAD /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (b"\xff\xfe\r\n\r\n", "400"),
            (b"GET /metrics HTTP/1.1\r\n", "400"),
            (b"", "400"),
            (&[b'a'; LIMIT], "431"),
        ] {
            assert_eq!(status(request), expected, "{}", String::from_utf8_lossy(request));
        }
    }

    #[test]
    fn a_slow_client_is_refused_at_the_time_limit() {
        let (result, text) = asked(b"GET /met", Duration::from_millis(50), false);
        assert_eq!(result.unwrap(), ExitStatus::Success);
        assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    }

    #[test]
    fn a_failure_is_reported_on_both_sides() {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let result = answer(OwnedFd::from(server).into(), TIME, || Err(Error::failed("no /proc".to_owned())));
        assert_eq!(result.unwrap_err().message, "no /proc");
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 500 ") && !text.contains("/proc"), "{text}");
        // A client that has gone.
        let (client, server) = UnixStream::pair().unwrap();
        drop(client);
        answer(OwnedFd::from(server).into(), TIME, || Ok(String::new())).unwrap();
    }
}
