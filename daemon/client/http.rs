//! `stats --http`: answers HTTP requests on the listening socket on standard input, for zramd-metrics.socket.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};
use tokio::time::timeout;

use super::out;
use engine::Error;
use logic::error::ErrorKind;
use logic::exit::ExitStatus;

/// Maximum length of a request.
const LIMIT: usize = 8 << 10;
/// Time for a request, and for its answer.
const TIME: Duration = Duration::from_secs(5);
/// Maximum number of connections. A further one replaces the oldest: clients that send or read nothing keep no other out.
const MOST: usize = 64;
/// Time without a connection after which this ends; systemd starts it for the next.
const IDLE: Duration = Duration::from_secs(10);
/// Prometheus' text format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers requests with the text for `GET /metrics`, and with an error for every other one, until there is none for a while.
pub fn run(text: impl Fn() -> Result<String, Error> + 'static) -> Result<ExitStatus, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::failed(format!("cannot begin: {error}")))?;
    let serving = async {
        let listener = std::net::TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?);
        listener.set_nonblocking(true)?;
        serve(&TcpListener::from_std(listener)?, Text::new(text), IDLE).await
    };
    LocalSet::new().block_on(&runtime, serving).map(|()| ExitStatus::Success).map_err(|error| {
        let message = format!(
            "standard input is no listening socket ({error}): run `systemctl start zramd-metrics.socket`"
        );
        Error::new(ErrorKind::InvalidArgument, message)
    })
}

/// Makes the text of an answer.
#[derive(Clone)]
struct Text {
    make: Rc<dyn Fn() -> Result<String, Error>>,
    /// The last error that was printed.
    said: Rc<RefCell<String>>,
}

impl Text {
    fn new(make: impl Fn() -> Result<String, Error> + 'static) -> Text {
        Text { make: Rc::new(make), said: Rc::default() }
    }

    /// The text, or the status without one. An error is printed once: any user can send requests.
    fn make(&self) -> Result<String, &'static str> {
        (self.make)().map_err(|error| {
            if self.said.replace(error.message.clone()) != error.message {
                out::error(&error.message);
            }
            "500 Internal Server Error"
        })
    }
}

async fn serve(listener: &TcpListener, text: Text, idle: Duration) -> io::Result<()> {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let accepted = timeout(idle, listener.accept()).await;
        open.retain(|connection| !connection.is_finished());
        match accepted {
            Ok(Ok((stream, _))) => {
                if open.len() == MOST
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                open.push_back(spawn_local(answer(stream, TIME, text.clone())));
                // A request is read, if it has arrived, before the next connection is accepted.
                yield_now().await;
            }
            // The client has gone.
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Ok(Err(error)) => return Err(error),
            Err(_) if open.is_empty() => return Ok(()),
            Err(_) => {}
        }
    }
}

async fn answer(stream: TcpStream, time: Duration, text: Text) {
    let request = timeout(time, request(&stream)).await.unwrap_or(Err("408 Request Timeout"));
    let (status, kind, body) = match request.and_then(|request| judge(&request)).and_then(|()| text.make()) {
        Ok(text) => ("200 OK", FORMAT, text),
        Err(status) => (status, "text/plain; charset=utf-8", format!("{status}\n")),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nAllow: GET\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // A client that does not read the answer, or has gone, is not an error of this program.
    if let Ok(Ok(())) = timeout(time, send(&stream, (head + &body).as_bytes())).await
        && let Ok(stream) = stream.into_std()
    {
        stream.shutdown(Shutdown::Write).ok();
    }
}

async fn send(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the head of a request, or returns the status for one that is too long or incomplete.
async fn request(stream: &TcpStream) -> Result<String, &'static str> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut buffer = [0; 1024];
        let room = buffer.len().min(LIMIT - head.len());
        if room == 0 {
            return Err("431 Request Header Fields Too Large");
        }
        let read = match stream.readable().await {
            Ok(()) => stream.try_read(&mut buffer[..room]),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) => return Err("400 Bad Request"),
            Ok(count) => head.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
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
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, test)
    }

    fn text() -> Text {
        Text::new(|| Ok("zramd_problems 0\n".to_owned()))
    }

    fn answer_on(server: UnixStream, time: Duration, text: Text) {
        server.set_nonblocking(true).unwrap();
        let server = std::net::TcpStream::from(OwnedFd::from(server));
        run(async { answer(TcpStream::from_std(server).unwrap(), time, text).await });
    }

    /// The answer to these bytes, within this time; the client then closes its side, or waits.
    fn asked(bytes: &[u8], time: Duration, closes: bool) -> String {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(bytes).unwrap();
        if closes {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let answering = thread::spawn(move || answer_on(server, time, text()));
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        answering.join().unwrap();
        text
    }

    fn status(request: &[u8]) -> String {
        let text = asked(request, TIME, true);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{text}");
        assert!(!body.contains("zramd"), "{text}");
        assert!(head.contains("\r\nAllow: GET\r\n"), "{text}");
        head.split(' ').nth(1).unwrap().to_owned()
    }

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nAllow: GET\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: 17\r\nConnection: close\r\n\r\nzramd_problems 0\n";

    #[test]
    fn only_get_metrics_is_answered() {
        assert_eq!(asked(REQUEST, TIME, false), ANSWER);
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
        let text = asked(b"GET /met", Duration::from_millis(50), false);
        assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
    }

    #[test]
    fn a_failure_is_reported_on_both_sides() {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let answering = thread::spawn(move || {
            let failing = Text::new(|| Err(Error::failed("no /proc".to_owned())));
            answer_on(server, TIME, failing.clone());
            failing.said.take()
        });
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(answering.join().unwrap(), "no /proc");
        assert!(text.starts_with("HTTP/1.1 500 ") && !text.contains("/proc"), "{text}");
        // A client that has gone.
        let (client, server) = UnixStream::pair().unwrap();
        drop(client);
        thread::spawn(move || answer_on(server, TIME, self::text())).join().unwrap();
    }

    /// Clients that send nothing, or only a part, and clients that do not read: each further one is served nevertheless.
    #[test]
    fn silent_clients_keep_no_other_out() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let serving = thread::spawn(move || {
            run(async {
                serve(&TcpListener::from_std(listener).unwrap(), text(), Duration::from_millis(20)).await
            })
        });
        let silent = |bytes: &'static [u8]| {
            let connect = move |_| {
                let mut client = Client::connect(place).unwrap();
                client.write_all(bytes).unwrap();
                client
            };
            (0..MOST).map(connect).collect::<Vec<Client>>()
        };
        for held in [silent(b""), silent(b"GET /met"), silent(REQUEST)] {
            let mut client = Client::connect(place).unwrap();
            client.write_all(REQUEST).unwrap();
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            assert_eq!(text, ANSWER);
            drop(held);
        }
        // Without a connection, it ends.
        serving.join().unwrap().unwrap();
    }
}
