//! A name server for a network of a few hosts: each listed name has the address that stands in for it, and
//! nothing else exists. No question leaves this machine, so a name cannot carry anything out.

use std::net::Ipv4Addr;

const HEADER: usize = 12;
const TYPE_A: u16 = 1;
const CLASS_IN: u16 = 1;
/// How long an answer may be kept, in seconds: about as long as a program that was given the table.
const TTL: u32 = 60;
const NO_ERROR: u8 = 0;
const NO_SUCH_NAME: u8 = 3;

/// What to send back, and what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) packet: Vec<u8>,
    /// The name in lower case, with anything that is no letter of a name escaped.
    pub(super) name: String,
    /// Whether the name is in the table.
    pub(super) known: bool,
}

struct Question<'a> {
    name: String,
    kind: u16,
    /// The bytes of the question, which a reply repeats.
    raw: &'a [u8],
}

/// Answers one packet; none to what is not one question about the internet, asked plainly.
pub(super) fn answer(packet: &[u8], table: &[(String, Ipv4Addr)]) -> Option<Reply> {
    let question = read(packet)?;
    let address = table.iter().find(|(name, _)| *name == question.name).map(|(_, address)| *address);
    let records = address.filter(|_| question.kind == TYPE_A);
    let rcode = if address.is_some() { NO_ERROR } else { NO_SUCH_NAME };
    let packet = write(packet, &question, rcode, records);
    Some(Reply { packet, name: question.name, known: address.is_some() })
}

fn read(packet: &[u8]) -> Option<Question<'_>> {
    let header = packet.get(..HEADER)?;
    let is_query = header[2] & 0b1111_1000 == 0;
    let counts = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    // Additional records (EDNS) are common, and left unread.
    if !is_query || counts(4) != 1 || counts(6) != 0 || counts(8) != 0 {
        return None;
    }
    let (name, length) = read_name(&packet[HEADER..])?;
    let raw = packet.get(HEADER..HEADER + length + 4)?;
    let [kind_high, kind_low, class_high, class_low] = *raw.last_chunk::<4>()?;
    let class = u16::from_be_bytes([class_high, class_low]);
    (class == CLASS_IN).then(|| Question { name, kind: u16::from_be_bytes([kind_high, kind_low]), raw })
}

/// A name and how many bytes it takes. There is nothing before a first question that a pointer could point
/// to, so a pointer is malformed.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let (mut name, mut at) = (String::new(), 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        if length > 63 || at + length > 254 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&written(bytes.get(at..at + length)?));
        at += length;
    }
}

/// A label in letters. A dot inside a label is escaped, or `a\.b` would be taken for `a.b`.
fn written(label: &[u8]) -> String {
    label.to_ascii_lowercase().escape_ascii().to_string().replace('.', "\\x2e")
}

fn write(asked: &[u8], question: &Question<'_>, rcode: u8, address: Option<Ipv4Addr>) -> Vec<u8> {
    let recursion_desired = asked[2] & 1;
    let mut reply = vec![asked[0], asked[1], 0b1000_0100 | recursion_desired, 0b1000_0000 | rcode];
    for count in [1, u16::from(address.is_some()), 0, 0] {
        reply.extend(count.to_be_bytes());
    }
    reply.extend(question.raw);
    if let Some(address) = address {
        // A pointer to the name in the question.
        reply.extend([0xc0, 0x0c]);
        reply.extend(TYPE_A.to_be_bytes());
        reply.extend(CLASS_IN.to_be_bytes());
        reply.extend(TTL.to_be_bytes());
        reply.extend([0, 4]);
        reply.extend(address.octets());
    }
    reply
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in super::super) fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut packet = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len()).unwrap());
            packet.extend(label.as_bytes());
        }
        packet.extend([0, 0, u8::try_from(kind).unwrap(), 0, 1]);
        packet
    }

    fn table() -> Vec<(String, Ipv4Addr)> {
        vec![("a.test".to_owned(), Ipv4Addr::new(198, 18, 0, 1))]
    }

    #[test]
    fn a_listed_name_has_its_address() {
        let reply = answer(&question("A.test", 1), &table()).unwrap();
        assert!(reply.known && reply.name == "a.test");
        assert_eq!(reply.packet[..8], [0xab, 0xcd, 0x85, 0x80, 0, 1, 0, 1]);
        assert_eq!(reply.packet[reply.packet.len() - 6..], [0, 4, 198, 18, 0, 1]);
        assert_eq!(reply.packet[HEADER + 1], b'A', "the question is repeated as it was asked");
    }

    #[test]
    fn other_kinds_of_a_listed_name_are_empty_and_other_names_do_not_exist() {
        let empty = answer(&question("a.test", 28), &table()).unwrap();
        assert_eq!((empty.known, &empty.packet[2..8]), (true, &[0x85, 0x80, 0, 1, 0, 0][..]));
        let none = answer(&question("secret.evil.test", 1), &table()).unwrap();
        assert_eq!((none.known, none.name.as_str(), none.packet[3] & 15), (false, "secret.evil.test", 3));
    }

    #[test]
    fn what_is_not_one_plain_question_gets_no_answer() {
        let good = question("a.test", 1);
        let with = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            packet
        };
        let chaos = with(good.len() - 1, 3);
        let long = question(&vec!["a".repeat(63); 5].join("."), 1);
        for bad in [
            Vec::new(),
            with(2, 0x81),
            with(2, 0x09),
            with(5, 2),
            with(7, 1),
            with(12, 0xc0),
            with(12, 200),
            chaos,
            long,
        ] {
            assert_eq!(answer(&bad, &table()), None, "{bad:?}");
        }
        for cut in 0..good.len() {
            assert_eq!(answer(&good[..cut], &table()), None, "{cut}");
        }
    }

    #[test]
    fn a_dot_inside_a_label_makes_no_other_name() {
        let mut packet = question("axtest", 1);
        packet[HEADER + 2] = b'.';
        let reply = answer(&packet, &table()).unwrap();
        assert_eq!((reply.known, reply.name.as_str()), (false, "a\\x2etest"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_or_dropped(start in any::<bool>(), noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let packet = if start { [&question("a.test", 1)[..HEADER], &noise].concat() } else { noise };
            if let Some(reply) = answer(&packet, &table()) {
                prop_assert!(reply.packet.len() <= packet.len() + 16);
                prop_assert!(!reply.name.contains(char::is_control));
            }
        }
    }
}
