# One image for the service, for workers and for every other command.
FROM node:20-bookworm-slim AS build
WORKDIR /src
# better-sqlite3 is compiled where npm has no binary for the platform.
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json tsconfig.client.json rolldown.config.js ./
COPY src src
RUN npm run build && npm prune --omit=dev --ignore-scripts && npm rebuild better-sqlite3

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/node_modules node_modules
COPY --from=build /src/dist dist
# Stores, inputs and results: mount a volume here.
WORKDIR /data
RUN chown node:node /data
USER node
# Answers that are under way get the time to come back: give the container at least as long (`stop_grace_period`).
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["--help"]
