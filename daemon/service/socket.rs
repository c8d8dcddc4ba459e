//! The bus socket, with limits for received messages.
//!
//! The bus delivers messages of up to 128 MiB from any user, and zbus allocates the announced length. Here the body of a
//! message that is too long is read and dropped; the call then arrives without arguments, and is refused.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{Shutdown, shutdown};
use tokio::io::Interest;
use tokio::net::UnixStream;
use zbus::address::transport::{Transport, UnixSocket};
use zbus::connection::socket::{ReadHalf, Socket, Split, WriteHalf};
use zbus::export::async_trait::async_trait;
use zbus::message::Type;
use zbus::names::{BusName, InterfaceName, MemberName, UniqueName};
use zbus::{Address, Message, ObjectPath};

use logic::log::beginning;

/// Maximum length of a call or signal in bytes. Any user can send these.
const LONGEST: usize = 8 * 1024;
/// Maximum length of a reply in bytes. These come only from the bus, PID 1 and polkit.
const LONGEST_REPLY: usize = 1024 * 1024;
/// Maximum length of a message of the protocol, in bytes.
const MOST: usize = 128 * 1024 * 1024;
/// Read size in bytes.
const CHUNK: usize = 8 * 1024;
/// Longest name of a property in log messages, in bytes.
const LONGEST_NAME: usize = 256;
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// Length of the fixed part of a header in bytes (D-Bus specification, "Message Format").
const FIXED: usize = 16;

/// A connection before the handshake.
#[derive(Debug)]
pub struct BusSocket(UnixStream);

impl BusSocket {
    /// Connects to the system bus.
    pub async fn connect() -> zbus::Result<BusSocket> {
        let address = Address::system()?;
        let Transport::Unix(unix) = address.transport() else { return Err(zbus::Error::Unsupported) };
        let UnixSocket::File(path) = unix.path() else { return Err(zbus::Error::Unsupported) };
        let failed = |error| zbus::Error::Connection(Arc::new(error), Box::new(address.clone()));
        UnixStream::connect(path).await.map(BusSocket).map_err(failed)
    }
}

impl Socket for BusSocket {
    type ReadHalf = Reader;
    type WriteHalf = Writer;

    fn split(self) -> Split<Reader, Writer> {
        let stream = Arc::new(self.0);
        Split::new(
            Reader { stream: Arc::clone(&stream), buffer: Vec::new() },
            Writer { stream, rest: Vec::new() },
        )
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct Reader {
    stream: Arc<UnixStream>,
    /// Bytes read that are not part of a message yet.
    buffer: Vec<u8>,
}

impl Reader {
    /// Reads until the buffer has `length` bytes.
    async fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length {
            let mut chunk = [0; CHUNK];
            match self.recvmsg(&mut chunk).await? {
                (0, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (read, _) => self.buffer.extend_from_slice(&chunk[..read]),
            }
        }
        Ok(())
    }

    /// Takes `length` bytes.
    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        self.fill(length).await?;
        Ok(self.buffer.drain(..length).collect())
    }

    /// Drops `length` bytes.
    async fn skip(&mut self, mut length: usize) -> io::Result<()> {
        while length > 0 {
            self.fill(1).await?;
            let here = length.min(self.buffer.len());
            self.buffer.drain(..here);
            length -= here;
        }
        Ok(())
    }
}

#[async_trait]
impl ReadHalf for Reader {
    async fn receive_message(
        &mut self,
        seq: u64,
        already_received: &mut Vec<u8>,
        fds: &mut Vec<OwnedFd>,
    ) -> zbus::Result<Message> {
        self.buffer.splice(..0, already_received.drain(..));
        loop {
            self.fill(FIXED).await?;
            let (header, body) = lengths(&self.buffer)?;
            let is_reply = [Type::MethodReturn as u8, Type::Error as u8].contains(&self.buffer[1]);
            let longest = if is_reply { LONGEST_REPLY } else { LONGEST };
            let mut message = if header + body <= longest {
                self.take(header + body).await?
            } else if header <= longest {
                let mut message = self.take(header).await?;
                // Sets the length of the body to 0.
                message[4..8].fill(0);
                self.skip(body).await?;
                message
            } else {
                self.skip(header + body).await?;
                continue;
            };
            // A message that zbus cannot parse, for example with a newer header field, does not end the connection.
            if let Ok(message) = Whole.receive_message(seq, &mut message, fds).await {
                note_call(&message);
                return Ok(message);
            }
        }
    }

    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let read = self.stream.async_io(Interest::READABLE, || self.stream.try_read(buffer)).await?;
        Ok((read, Vec::new()))
    }
}

/// The sending half.
#[derive(Debug)]
pub struct Writer {
    stream: Arc<UnixStream>,
    /// Bytes of a message of which others were sent. Who sends it may give up at any time, and the bus would take the next message for
    /// the rest of this one.
    rest: Vec<u8>,
}

impl Writer {
    /// Sends what is left of a message.
    async fn complete(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            let sent = self.write(&self.rest).await?;
            self.rest.drain(..sent);
        }
        // It may have been long.
        self.rest = Vec::new();
        Ok(())
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.async_io(Interest::WRITABLE, || self.stream.try_write(bytes)).await
    }
}

#[async_trait]
impl WriteHalf for Writer {
    async fn send_message(&mut self, message: &Message) -> zbus::Result<()> {
        self.complete().await?;
        note_answer(message);
        let sent = self.write(message.data()).await?;
        self.rest.extend_from_slice(&message.data()[sent..]);
        Ok(self.complete().await?)
    }

    async fn sendmsg(&mut self, buffer: &[u8], _fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.write(buffer).await
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(shutdown(&self.stream, Shutdown::Both)?)
    }
}

/// Logs a call with its serial number, which its answer has, too.
fn note_call(message: &Message) {
    if !tracing::enabled!(tracing::Level::DEBUG) || message.message_type() != Type::MethodCall {
        return;
    }
    let header = message.header();
    let [sender, path, interface, member] = [
        header.sender().map(UniqueName::as_str),
        header.path().map(ObjectPath::as_str),
        header.interface().map(InterfaceName::as_str),
        header.member().map(MemberName::as_str),
    ]
    .map(Option::unwrap_or_default);
    let body = message.body();
    // Which property is read.
    let read = body.deserialize::<(&str, &str)>().ok().filter(|_| interface == PROPERTIES && member == "Get");
    let property = read.map(|(of, name)| format!(": {:?}", beginning(&format!("{of}.{name}"), LONGEST_NAME)));
    tracing::debug!(
        "call {} of {sender}: {interface}.{member} of {path}{}",
        header.primary().serial_num(),
        property.unwrap_or_default()
    );
}

/// Logs an answer to a call.
fn note_answer(message: &Message) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let header = message.header();
    let Some(serial) = header.reply_serial() else { return };
    let caller = header.destination().map(BusName::as_str).unwrap_or_default();
    match header.error_name() {
        Some(error) => tracing::debug!("call {serial} of {caller}: answered with {error}"),
        None => tracing::debug!("call {serial} of {caller}: answered with {} bytes", message.body().len()),
    }
}

/// Parses a message from memory; `Message::from_bytes` is unsafe.
#[derive(Debug)]
struct Whole;

#[async_trait]
impl ReadHalf for Whole {
    async fn recvmsg(&mut self, _buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        Ok((0, Vec::new()))
    }
}

/// Lengths of the header (with padding) and of the body of the message at the start of the buffer.
fn lengths(message: &[u8]) -> zbus::Result<(usize, usize)> {
    let number = |at: usize| {
        let bytes = [message[at], message[at + 1], message[at + 2], message[at + 3]];
        let number = match message[0] {
            b'l' => u32::from_le_bytes(bytes),
            b'B' => u32::from_be_bytes(bytes),
            _ => return Err(zbus::Error::IncorrectEndian),
        };
        usize::try_from(number).ok().filter(|number| *number <= MOST).ok_or(zbus::Error::ExcessData)
    };
    Ok(((FIXED + number(12)?).next_multiple_of(8), number(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(member: &str, body: &str) -> Vec<u8> {
        Message::method_call("/", member).build(&body).unwrap().data().to_vec()
    }

    /// The same with an unknown header field of `length` bytes.
    fn with_new_field(mut message: Vec<u8>, length: usize) -> Vec<u8> {
        let (header, _) = lengths(&message).unwrap();
        let body = message.split_off(header);
        // Field 99, a string.
        message.extend_from_slice(b"\x63\x01s\0");
        message.extend_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        message.extend(vec![b'x'; length]);
        message.push(0);
        let fields = u32::try_from(message.len() - FIXED).unwrap();
        message[12..16].copy_from_slice(&fields.to_le_bytes());
        message.resize(message.len().next_multiple_of(8), 0);
        message.extend(body);
        message
    }

    #[test]
    fn long_and_unknown_messages_do_not_affect_others() {
        let sent = [
            call("Short", "x"),
            call("Long", &"x".repeat(1_000_000)),
            with_new_field(call("New", "x"), 10),
            with_new_field(call("LongNew", "x"), 1_000_000),
            call("Last", "y"),
        ]
        .concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let received = runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (mut reader, _) = BusSocket(ours).split().take();
            let (_, mut writer) = BusSocket(theirs).split().take();
            let send = tokio::spawn(async move {
                let mut rest = sent.as_slice();
                while !rest.is_empty() {
                    let now = rest.len().min(10_007);
                    let written = writer.sendmsg(&rest[..now], &[]).await.unwrap();
                    rest = &rest[written..];
                }
                writer.close().await.unwrap();
            });
            let mut received = Vec::new();
            while let Ok(message) = reader.receive_message(1, &mut Vec::new(), &mut Vec::new()).await {
                let member = message.header().member().unwrap().to_string();
                received.push((member, message.body().deserialize::<String>().ok()));
            }
            send.await.unwrap();
            received
        });
        let some = |member: &str, body: &str| (member.to_owned(), Some(body.to_owned()));
        assert_eq!(received, [some("Short", "x"), ("Long".to_owned(), None), some("Last", "y")]);
    }

    #[test]
    fn a_message_whose_sender_gives_up_is_completed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer = |body: &str| {
            let call = Message::method_call("/", "Call").build(&()).unwrap();
            Message::method_return(&call.header()).build(&body).unwrap()
        };
        let received = runtime.block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (_, mut writer) = BusSocket(ours).split().take();
            let (mut reader, _) = BusSocket(theirs).split().take();
            // More than the socket takes.
            let long = answer(&"x".repeat(LONGEST_REPLY * 3 / 4));
            let given_up = tokio::time::timeout(std::time::Duration::ZERO, writer.send_message(&long)).await;
            assert!(given_up.is_err());
            let send =
                tokio::spawn(async move { writer.send_message(&answer("next")).await.map(|()| writer) });
            let mut received = Vec::new();
            for _ in 0..2 {
                let message = reader.receive_message(1, &mut Vec::new(), &mut Vec::new()).await.unwrap();
                received.push(message.body().deserialize::<String>().unwrap().len());
            }
            send.await.unwrap().unwrap();
            received
        });
        assert_eq!(received, [LONGEST_REPLY * 3 / 4, 4]);
    }
}
