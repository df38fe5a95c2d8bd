/** All that the service answers, beside its health. */
import type { RunWatch } from '../run-watch.js';
import type { TaskService } from '../service.js';
import type { AddRoutes } from './route.js';
import { runRoutes } from './run-routes.js';
import { taskRoutes } from './task-routes.js';
import { metricsRoute, type RenderMetrics, watchRoutes } from './watch-routes.js';

export function allRoutes(
  service: TaskService,
  watch: RunWatch,
  renderMetrics: RenderMetrics,
): readonly AddRoutes[] {
  return [taskRoutes(service), runRoutes(service), watchRoutes(watch), metricsRoute(renderMetrics)];
}
