// Unpacks the Chromium that @sparticuz/chromium carries: node unpack.mjs PACKAGE_BIN TO
import { execFileSync } from 'node:child_process';
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';

const [from, to] = process.argv.slice(2);
const unpack = (file, as, mode) =>
  pipeline(createReadStream(join(from, file)), createBrotliDecompress(), createWriteStream(join(to, as), { mode }));

await unpack('chromium.br', 'headless_shell', 0o755);
for (const name of ['al2023', 'swiftshader', 'fonts']) {
  await unpack(`${name}.tar.br`, 'packed.tar', 0o600);
  execFileSync('tar', ['-C', to, '-xf', join(to, 'packed.tar')]);
  rmSync(join(to, 'packed.tar'));
}
