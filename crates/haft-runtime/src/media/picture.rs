//! Images as a model can see them: upright, and in a format that every provider takes.

use crate::tool::Reply;
use base64::Engine as _;
use haft_core::CallError;
use haft_core::preview::size;
use haft_core::shape::Binary;
use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits};
use serde_json::json;
use std::borrow::Cow;
use std::io::Cursor;

/// Larger files are refused, and so are larger results.
pub(crate) const BYTES_MAX: u64 = 20 << 20;
/// Larger images are refused before they are decoded: a few kilobytes can claim to be gigapixels.
const PIXELS_MAX: u64 = 100_000_000;
/// What decoding may allocate: the largest image at four bytes a pixel, and some for the decoder.
const MEMORY_MAX: u64 = 512 << 20;
/// Good enough that text in a screenshot stays legible.
const JPEG_QUALITY: u8 = 90;

/// An image ready to be passed on.
pub(crate) struct Picture<'c> {
    format: ImageFormat,
    bytes: Cow<'c, [u8]>,
    width: u32,
    height: u32,
}

impl Picture<'_> {
    /// Its media type.
    pub(crate) fn mime(&self) -> &'static str {
        self.format.to_mime_type()
    }

    /// Its bytes, as text.
    pub(crate) fn base64(&self) -> String {
        base64::prelude::BASE64_STANDARD.encode(&self.bytes)
    }
}

/// The format of an image, if it can be decoded here.
pub(crate) fn format(shown: &str, found: Binary) -> Result<ImageFormat, CallError> {
    ImageFormat::from_mime_type(found.mime).filter(ImageFormat::reading_enabled).ok_or_else(|| {
        CallError::failed(format!("{shown} is an image in {} format, which cannot be decoded here", found.name))
            .hint("PNG, JPEG, GIF, WebP, TIFF and BMP can; convert it to one of these first")
    })
}

/// An image as a model can see it, and what was done to it for that.
pub(crate) fn prepared<'c>(shown: &str, content: &'c [u8], found: Binary) -> Result<(Picture<'c>, String), CallError> {
    let format = format(shown, found)?;
    let explain = |error| explain(shown, found, &error);
    let (width, height) = dimensions(content, format).map_err(explain)?;
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(CallError::failed(format!("{shown} is too large to be shown: {width}x{height}"))
            .hint("scale it down to less than 100 megapixels first"));
    }
    let orientation = orientation(content);
    if orientation == Orientation::NoTransforms && passes_as_it_is(format) {
        return Ok((Picture { format, bytes: Cow::Borrowed(content), width, height }, String::new()));
    }
    let picture = convert(content, format, orientation).map_err(explain)?;
    if picture.bytes.len() as u64 > BYTES_MAX {
        let (size, mime) = (size(picture.bytes.len()), picture.mime());
        return Err(CallError::failed(format!("{shown} would be {size} as {mime}")).hint("scale it down first"));
    }
    let how = if picture.format == format {
        " (turned upright)".to_owned()
    } else {
        format!(" (converted from {})", found.mime)
    };
    Ok((picture, how))
}

/// The reply that shows an image.
pub(crate) fn reply(shown: &str, content: &[u8], found: Binary) -> Result<Reply, CallError> {
    let (picture, how) = prepared(shown, content, found)?;
    let (mime, data) = (picture.mime(), picture.base64());
    let Picture { bytes, width, height, .. } = picture;
    let text = format!("Image: {shown}, {mime}, {width}x{height}, {}{how}", size(bytes.len()));
    let image = json!({"mime_type": mime, "data": data, "width": width, "height": height, "bytes": bytes.len()});
    Ok(Reply::text(text).data(json!({ "image": image })))
}

fn passes_as_it_is(format: ImageFormat) -> bool {
    matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP)
}

fn reader(content: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MEMORY_MAX);
    reader.limits(limits);
    reader
}

/// Width and height from the header alone.
fn dimensions(content: &[u8], format: ImageFormat) -> Result<(u32, u32), ImageError> {
    reader(content, format).into_decoder().map(|decoder| decoder.dimensions())
}

/// How the camera was held. Broken or missing metadata mean upright.
fn orientation(content: &[u8]) -> Orientation {
    let exif = exif::Reader::new()
        .continue_on_error(true)
        .read_from_container(&mut Cursor::new(content))
        .or_else(|error| error.distill_partial_result(drop));
    let number = exif.ok().and_then(|exif| {
        exif.get_field(exif::Tag::Orientation, exif::In::PRIMARY).and_then(|field| field.value.get_uint(0))
    });
    number.and_then(|n| u8::try_from(n).ok()).and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
}

/// The image turned upright, as PNG where JPEG would lose transparency or sharp edges.
fn convert(content: &[u8], format: ImageFormat, orientation: Orientation) -> Result<Picture<'static>, ImageError> {
    let mut image = reader(content, format).decode()?;
    image.apply_orientation(orientation);
    let (width, height) = (image.width(), image.height());
    let lossless = format == ImageFormat::Png || image.color().has_alpha();
    let mut bytes = Vec::new();
    let format = if lossless {
        png_depth(image).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
        ImageFormat::Png
    } else {
        JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY).encode_image(&image.into_rgb8())?;
        ImageFormat::Jpeg
    };
    Ok(Picture { format, bytes: bytes.into(), width, height })
}

/// Eight bits a channel: no model sees more.
fn png_depth(image: DynamicImage) -> DynamicImage {
    if image.color().has_alpha() { image.into_rgba8().into() } else { image.into_rgb8().into() }
}

fn explain(shown: &str, found: Binary, error: &ImageError) -> CallError {
    if matches!(error, ImageError::Limits(_)) {
        return CallError::failed(format!("{shown} is too large an image to be decoded")).hint("scale it down first");
    }
    let (name, why) = (found.name, error.to_string());
    CallError::failed(format!("{shown} looks like a {name} image but cannot be decoded: {}", why.trim_end()))
        .hint("the file may be damaged; encoding base64 gives its bytes")
}
