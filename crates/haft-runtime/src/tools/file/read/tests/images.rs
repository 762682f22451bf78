//! What a caller sees of images.

use super::*;
use ::image::{DynamicImage, ImageFormat, ImageReader, Rgb, RgbImage, Rgba, RgbaImage};
use std::io::Cursor;

/// A wide image whose top left corner is red, on blue.
fn corner() -> DynamicImage {
    let red = |x, y| if x < 16 && y < 16 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) };
    RgbImage::from_fn(64, 32, red).into()
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// A big-endian TIFF header with one entry: the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"MM\0\x2a\0\0\0\x08\0\x01".to_vec();
    tiff.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]);
    tiff.extend([0; 4]);
    tiff
}

/// The JPEG with an APP1 segment right after its first marker.
fn with_exif(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let body = [b"Exif\0\0".as_slice(), &exif(orientation)].concat();
    let length = u16::try_from(body.len() + 2).unwrap().to_be_bytes();
    [&jpeg[..2], &[0xff, 0xe1], &length, &body, &jpeg[2..]].concat()
}

struct Seen {
    text: String,
    data: Value,
    bytes: Vec<u8>,
}

fn see(stage: &Stage, path: &str) -> Seen {
    let reply = act(stage, json!({"path": path})).unwrap();
    let data = reply.data.unwrap()["image"].take();
    let bytes = base64::prelude::BASE64_STANDARD.decode(data["data"].as_str().unwrap()).unwrap();
    assert_eq!(data["bytes"], bytes.len());
    Seen { text: reply.text, data, bytes }
}

impl Seen {
    fn decode(&self) -> RgbImage {
        let reader = ImageReader::new(Cursor::new(&self.bytes)).with_guessed_format().unwrap();
        reader.decode().unwrap().into_rgb8()
    }
}

#[test]
fn ordinary_images_pass_as_they_are() {
    let stage = Stage::new();
    for (name, format) in [
        ("a.png", ImageFormat::Png),
        ("a.jpg", ImageFormat::Jpeg),
        ("a.gif", ImageFormat::Gif),
        ("a.webp", ImageFormat::WebP),
    ] {
        let content = encoded(&corner(), format);
        stage.file(name, &content);
        let seen = see(&stage, name);
        assert!(seen.bytes == content, "{name}");
        let size = size(content.len());
        assert_eq!(seen.text, format!("Image: {name}, {}, 64x32, {size}", format.to_mime_type()));
        assert_eq!((&seen.data["width"], &seen.data["height"]), (&json!(64), &json!(32)));
        assert_eq!(overwrite(&stage, name), format!("Overwrote {name} (3B, 1 lines)"));
    }
}

#[test]
fn all_eight_ways_to_hold_a_camera_come_out_upright() {
    let stage = Stage::new();
    // Where the stored top left corner belongs: right?, bottom?, and whether the sides swap.
    let expected = [
        (false, false, false),
        (true, false, false),
        (true, true, false),
        (false, true, false),
        (false, false, true),
        (true, false, true),
        (true, true, true),
        (false, true, true),
    ];
    let jpeg = encoded(&corner(), ImageFormat::Jpeg);
    for (number, (right, bottom, swapped)) in (1..=8).zip(expected) {
        stage.file("a.jpg", with_exif(&jpeg, number));
        let seen = see(&stage, "a.jpg");
        let image = seen.decode();
        let size = if swapped { (32, 64) } else { (64, 32) };
        assert_eq!(image.dimensions(), size, "orientation {number}");
        assert_eq!((&seen.data["width"], &seen.data["height"]), (&json!(size.0), &json!(size.1)));
        for (at_right, at_bottom) in [(false, false), (true, false), (false, true), (true, true)] {
            let x = if at_right { size.0 - 4 } else { 4 };
            let y = if at_bottom { size.1 - 4 } else { 4 };
            let red = image.get_pixel(x, y).0[0] > 128;
            assert_eq!(red, (at_right, at_bottom) == (right, bottom), "orientation {number}, corner {x},{y}");
        }
        assert_eq!(seen.text.ends_with("(turned upright)"), number != 1);
    }
}

#[test]
fn broken_metadata_mean_upright() {
    let stage = Stage::new();
    let jpeg = encoded(&corner(), ImageFormat::Jpeg);
    for orientation in [0, 9, 255] {
        let content = with_exif(&jpeg, orientation);
        stage.file("a.jpg", &content);
        assert!(see(&stage, "a.jpg").bytes == content);
    }
}

#[test]
fn other_formats_are_converted() {
    let stage = Stage::new();
    let clear: DynamicImage = RgbaImage::from_pixel(8, 6, Rgba([1, 2, 3, 4])).into();
    stage.file("a.tiff", encoded(&corner(), ImageFormat::Tiff));
    stage.file("b.tiff", encoded(&clear, ImageFormat::Tiff));
    stage.file("c.bmp", encoded(&corner(), ImageFormat::Bmp));
    let told = ["a.tiff", "b.tiff", "c.bmp"].map(|path| {
        let seen = see(&stage, path);
        format!(
            "{} {}x{} {}",
            seen.data["mime_type"],
            seen.data["width"],
            seen.data["height"],
            seen.text.ends_with(')')
        )
    });
    assert_eq!(told, [r#""image/jpeg" 64x32 true"#, r#""image/png" 8x6 true"#, r#""image/jpeg" 64x32 true"#]);
}

/// A PNG header that claims a size.
fn claimed(width: u32, height: u32) -> Vec<u8> {
    let tiny = encoded(&corner(), ImageFormat::Png);
    let mut header = tiny[12..29].to_vec();
    header[4..8].copy_from_slice(&width.to_be_bytes());
    header[8..12].copy_from_slice(&height.to_be_bytes());
    let sum = checksum(&header).to_be_bytes();
    [&tiny[..12], &header, &sum, &tiny[33..]].concat()
}

/// The CRC-32 that PNG chunks carry.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

#[test]
fn images_that_cannot_be_shown_say_why() {
    let stage = Stage::new();
    stage.file("bomb.png", claimed(50_000, 50_000));
    stage.file("good.png", claimed(64, 32));
    stage.file("broken.jpg", b"\xff\xd8\xff\xe0 nonsense");
    stage.file("a.heic", b"\0\0\0\x18ftypheic\0\0\0\0");
    stage.file("a.avif", b"\0\0\0\x18ftypavif\0\0\0\0");
    let huge = std::fs::File::create(stage.root().join("huge.png")).unwrap();
    std::io::Write::write_all(&mut &huge, &encoded(&corner(), ImageFormat::Png)).unwrap();
    huge.set_len(2 << 30).unwrap();
    let said = ["bomb.png", "broken.jpg", "a.heic", "a.avif", "huge.png"]
        .map(|path| act(&stage, json!({"path": path})).unwrap_err().message);
    insta::assert_snapshot!(said.join("\n"), @r"
    bomb.png is too large to be shown: 50000x50000
    broken.jpg looks like a JPEG image but cannot be decoded: Format error decoding Jpeg: I/O errors Not enough bytes, expected 1 but found 0
    a.heic is an image in HEIC format, which cannot be decoded here
    a.avif is an image in AVIF format, which cannot be decoded here
    huge.png is larger than 20.0MB, the limit for this way of reading
    ");
    see(&stage, "good.png");
}
