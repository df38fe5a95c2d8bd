/**
 * A disk of a few hundred kilobytes that really fills up: a file system in memory, mounted where only processes that
 * enter its name space see it. It is gone with the process that holds the name space, however that ends.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

export class SmallDisk {
  readonly folder: string;
  readonly #holder: ChildProcess;

  private constructor(folder: string, holder: ChildProcess) {
    this.folder = folder;
    this.#holder = holder;
  }

  /** @param folder an empty one, over which the disk is mounted */
  static async mount(folder: string, kilobytes: number): Promise<SmallDisk> {
    const script = `mount -t tmpfs -o size=${kilobytes}k tmpfs "$1" && echo mounted && exec cat`;
    const holder = spawn('unshare', ['-m', 'sh', '-c', script, 'sh', folder], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const said = await Promise.race([
      once(holder.stdout, 'data'),
      once(holder, 'exit').then(() => 'nothing'),
    ]);
    if (String(said).trim() !== 'mounted') throw new Error(`no disk was mounted: ${said}`);
    return new SmallDisk(folder, holder);
  }

  /** The beginning of a command line that runs in `workingFolder` and sees the disk. */
  wrapper(workingFolder: string): readonly string[] {
    const script = 'cd "$1" && shift && exec "$@"';
    return ['nsenter', '-t', String(this.#holder.pid), '-m', 'sh', '-c', script, 'sh', workingFolder];
  }

  /** Makes room, as a user who deletes something. */
  grow(kilobytes: number): void {
    this.#run('mount', '-o', `remount,size=${kilobytes}k`, this.folder);
  }

  /** Brings what is on the disk to where everybody sees it. */
  copyTo(folder: string): void {
    this.#run('cp', '-a', `${this.folder}/.`, folder);
  }

  freeKilobytes(): number {
    const lines = this.#run('df', '-Pk', this.folder).trim().split('\n');
    return Number(lines.at(-1)?.split(/\s+/)[3]);
  }

  async unmount(): Promise<void> {
    if (this.#holder.exitCode !== null) return;
    this.#holder.stdin?.end();
    await once(this.#holder, 'exit');
  }

  #run(...command: string[]): string {
    const [program = '', ...parameters] = [...this.wrapper('/'), ...command];
    return execFileSync(program, parameters, { encoding: 'utf8' });
  }
}
