# The broker and its command line in an image that holds one file and one empty folder: a static binary on
# scratch, no shell, no certificates of others, and nothing that runs as root.
#
#   make image
#   docker run --read-only -v felix-data:/data -v /etc/felix:/etc/felix:ro -p 5000:5000/udp -p 127.0.0.1:5001:5001 \
#     felix:VERSION serve --data /data --config /etc/felix/broker.yaml --admin :5001
#
# docs/configuration.md says what is in /etc/felix. The default command alone knows nobody's keys, and refuses to start.

FROM golang:1.26 AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOTOOLCHAIN=local

# The modules on their own first: a change of our source does not fetch them again.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download

COPY . .
ARG VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/felix ./cmd/felix && \
    mkdir /out/data

FROM scratch
COPY --from=build /out/felix /felix
# A new volume takes its owner from this folder, so that the user below may write to it.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
# QUIC, and the admin's HTTP.
EXPOSE 5000/udp 5001/tcp
ENTRYPOINT ["/felix"]
CMD ["serve", "--data", "/data"]
