//! A D-Bus client without library, which can send any bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use zbus::Message;
use zbus::message::Type;

/// A connection after Hello.
pub struct Raw {
    socket: BufReader<UnixStream>,
}

/// The relevant parts of a reply.
#[derive(Debug)]
pub struct Answer {
    /// An error rather than a method return.
    pub is_error: bool,
    /// The raw header, to search for names.
    pub header: String,
    /// Length of the body in bytes.
    pub body: usize,
}

impl Raw {
    /// Connects, authenticates, and calls Hello.
    pub fn connect(socket: &Path) -> Raw {
        let socket = UnixStream::connect(socket).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut raw = Raw { socket: BufReader::new(socket) };
        let user = rustix::process::geteuid().as_raw().to_string();
        let user: Vec<String> = user.bytes().map(|digit| format!("{digit:02x}")).collect();
        raw.send_bytes(format!("\0AUTH EXTERNAL {}\r\n", user.concat()).as_bytes());
        let mut line = String::new();
        raw.socket.read_line(&mut line).unwrap();
        assert!(line.starts_with("OK "), "{line:?}");
        raw.send_bytes(b"BEGIN\r\n");
        let bus = "org.freedesktop.DBus";
        let hello = Message::method_call("/org/freedesktop/DBus", "Hello").destination(bus).interface(bus);
        let hello = hello.build(&()).unwrap();
        raw.send(&hello);
        assert!(!raw.answer().is_error);
        raw
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    /// Sends bytes; fails if the bus closes the connection before their end.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.get_mut().write_all(bytes)
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Message) {
        self.send_bytes(message.data());
    }

    /// The next method return or error; signals are skipped.
    pub fn answer(&mut self) -> Answer {
        loop {
            let (kind, header, body) = self.message();
            if kind == Type::MethodReturn as u8 || kind == Type::Error as u8 {
                let header = String::from_utf8_lossy(&header).into_owned();
                return Answer { is_error: kind == Type::Error as u8, header, body };
            }
        }
    }

    fn message(&mut self) -> (u8, Vec<u8>, usize) {
        let mut fixed = [0; 16];
        self.socket.read_exact(&mut fixed).expect("an answer");
        assert_eq!(fixed[0], b'l', "another byte order");
        let number = |at: usize| u32::from_le_bytes(fixed[at..at + 4].try_into().unwrap()) as usize;
        let mut header = vec![0; number(12).next_multiple_of(8)];
        self.socket.read_exact(&mut header).unwrap();
        let mut body = vec![0; number(4)];
        self.socket.read_exact(&mut body).unwrap();
        (fixed[1], header, body.len())
    }

    /// Whether the bus has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        // A reset counts as an end, a timeout does not.
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
