/**
 * What kind of file system a store would live on. SQLite's write-ahead log needs memory shared between processes,
 * which network file systems do not give (sqlite.org/wal.html), and their locks cannot be relied on.
 */
import { statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

export interface FileSystem {
  /** As `statfs(2)` and the kernel's magic.h call it; `unknown` for the rest. */
  readonly name: string;
  /** Files may be changed from another machine. */
  readonly network: boolean;
  /** It may or may not be: FUSE carries local file systems and remote ones such as sshfs. */
  readonly uncertain: boolean;
  readonly freeBytes: number;
}

/** `f_type` values of Linux (include/uapi/linux/magic.h and the drivers of those not listed there). */
const MAGIC: Readonly<Record<number, readonly [name: string, network: boolean]>> = {
  61267: ['ext4', false],
  1481003842: ['xfs', false],
  2435016766: ['btrfs', false],
  16914836: ['tmpfs', false],
  2035054128: ['overlayfs', false],
  801189825: ['zfs', false],
  4076150800: ['f2fs', false],
  19780: ['fat', false],
  538032816: ['exfat', false],
  1397118030: ['ntfs', false],
  26985: ['nfs', true],
  4283649346: ['smb', true],
  4266872130: ['smb2', true],
  20859: ['smb', true],
  16914839: ['9p', true],
  1702057286: ['fuse', false],
  12805120: ['ceph', true],
  1397113167: ['afs', true],
  // Lustre and GPFS have magic numbers of their own drivers.
  198183888: ['lustre', true],
  1196443219: ['gpfs', true],
};

/**
 * The file system under a path that may not exist yet.
 * @param statfs replaced in tests, which cannot mount what they like
 */
export function fileSystemOf(path: string, statfs: typeof statfsSync = statfsSync): FileSystem {
  const { type, bavail, bsize } = statfs(dirname(resolve(path)));
  // Some kernels report the 32-bit number with its sign.
  const [name, network] = MAGIC[type >>> 0] ?? ['unknown', false];
  return { name, network, uncertain: name === 'fuse', freeBytes: Number(bavail) * Number(bsize) };
}
