import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileSystemOf } from '../../src/store/file-system.js';

function typed(type: number) {
  return (() => ({ type, bavail: 1_000, bsize: 4_096 })) as unknown as typeof import('node:fs').statfsSync;
}

describe('the file system of a store', () => {
  it.each([
    ['nfs', 0x6969],
    ['smb', 0xff534d42],
    ['smb2', 0xfe534d42],
    ['9p', 0x01021997],
    ['ceph', 0x00c36400],
  ])('%s is told to be of the network', (name, magic) => {
    expect(fileSystemOf('/data/store.db', typed(magic))).toMatchObject({ name, network: true });
  });

  it.each([
    ['ext4', 0xef53],
    ['fuse', 0x65735546],
    ['xfs', 0x58465342],
    ['btrfs', 0x9123683e],
    ['tmpfs', 0x01021994],
    ['overlayfs', 0x794c7630],
  ])('%s is told to be local', (name, magic) => {
    expect(fileSystemOf('/data/store.db', typed(magic))).toMatchObject({ name, network: false });
  });

  it('is recognised when the kernel gives the number with its sign', () => {
    expect(fileSystemOf('/data/store.db', typed(0xff534d42 | 0)).network).toBe(true);
  });

  it('tells how much room is left, also for a file that is still to be made', () => {
    expect(fileSystemOf('/data/store.db', typed(0xef53)).freeBytes).toBe(4_096_000);
    expect(fileSystemOf(join(tmpdir(), 'not-yet.db')).freeBytes).toBeGreaterThan(0);
  });
});
