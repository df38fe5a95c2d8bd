/**
 * What every backend of the store port promises, one sentence a test. A backend is done when this is green; what
 * it cannot do is in its `capabilities`, never a silent skip.
 */
import { describe } from 'vitest';
import { backlogContract } from './store/backlog.js';
import type { OpenStoreUnderTest } from './store/builders.js';
import { importsContract } from './store/imports.js';
import { ownerContract } from './store/owner.js';
import { queueContract } from './store/queue.js';
import { recordContract } from './store/record.js';
import { reimportsContract } from './store/reimports.js';
import { remoteContract } from './store/remote.js';
import { removalContract } from './store/removal.js';
import { rescueContract } from './store/rescue.js';
import { resultsContract } from './store/results.js';
import { runsContract } from './store/runs.js';
import { servedContract } from './store/served.js';
import { sharingContract } from './store/sharing.js';
import { storePerTest } from './store/store-of.js';
import { summaryContract } from './store/summary.js';
import { tasksContract } from './store/tasks.js';
import { timelineContract } from './store/timeline.js';
import { workersContract } from './store/workers.js';

/** @param open gives an empty store of its own at each call */
export function storeContract(name: string, open: OpenStoreUnderTest): void {
  describe(`store contract: ${name}`, () => {
    const storeOf = storePerTest(open);
    runsContract(storeOf);
    importsContract(storeOf);
    reimportsContract(storeOf);
    queueContract(storeOf);
    backlogContract(storeOf);
    sharingContract(storeOf);
    recordContract(storeOf);
    rescueContract(storeOf);
    remoteContract(storeOf);
    servedContract(storeOf);
    workersContract(storeOf);
    resultsContract(storeOf);
    tasksContract(storeOf);
    summaryContract(storeOf);
    timelineContract(storeOf);
    removalContract(storeOf);
    ownerContract(storeOf);
  });
}
