#!/usr/bin/env bash
# Builds the image of ./Dockerfile with buildah, on a base that is made here and stands in for the public one: Debian by
# debootstrap, Node and npm from the npm packages of these names. Prints the image's name.
#
#   test/e2e/image/build.sh
#
# The base is kept in .cache/e2e/image for the next time; look into it by `buildah --root` and `--runroot` as here.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cache=$PWD/.cache/e2e/image
suite=bookworm
npm_version=11.6.2
node_version=$(node_modules/node/bin/node --version)
base=localhost/node-stand-in:${node_version#v}-$suite
image=localhost/peerdns:e2e
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9

buildah() {
  command buildah --root "$cache/storage" --runroot "$cache/run" "$@"
}
say() {
  echo "$*" >&2
}

if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  if [ ! -e "$cache/$suite.tar" ]; then
    say "debootstrap $suite"
    rm -rf "$cache/rootfs"
    # Outside of .cache nothing is written; the packages are Debian's, by this machine's mirror.
    debootstrap --variant=minbase --include=libstdc++6,libatomic1 "$suite" "$cache/rootfs" >"$cache/debootstrap.log" ||
      { tail -n 20 "$cache/debootstrap.log" >&2; exit 1; }
    tar --one-file-system -C "$cache/rootfs" -cf "$cache/$suite.tar.new" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists .
    mv "$cache/$suite.tar.new" "$cache/$suite.tar"
    rm -rf "$cache/rootfs"
  fi
  say "npm $npm_version"
  npm install --prefix "$cache/npm" "npm@$npm_version" --ignore-scripts --no-audit --no-fund >/dev/null
  container=$(buildah from scratch)
  buildah add -q "$container" "$cache/$suite.tar" / >/dev/null
  buildah copy -q "$container" node_modules/node/bin/node /usr/local/bin/node >/dev/null
  buildah copy -q "$container" "$cache/npm/node_modules/npm" /usr/local/lib/node_modules/npm >/dev/null
  mounted=$(buildah mount "$container")
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$mounted/usr/local/bin/npm"
  buildah umount "$container" >/dev/null
  buildah config --env PATH=/usr/local/bin:/usr/bin:/bin "$container"
  # Whatever this machine trusts, npm trusts during the build. The base gives nothing of it to the image.
  [ -z "${NODE_EXTRA_CA_CERTS:-}" ] || buildah config --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/of-the-host.crt "$container"
  buildah commit -q "$container" "$base" >/dev/null
  buildah rm "$container" >/dev/null
fi

trust=()
[ -z "${NODE_EXTRA_CA_CERTS:-}" ] || trust=(--volume "$NODE_EXTRA_CA_CERTS:/etc/ssl/certs/of-the-host.crt:ro")
say "buildah build"
# The docker format: that of OCI has no HEALTHCHECK. Without a runtime on this machine, chroot is isolation enough.
buildah build --format docker --isolation chroot --network host --pull=false --build-arg "NODE_IMAGE=$base" \
  "${trust[@]}" -t "$image" . >"$cache/build.log" 2>&1 || { tail -n 40 "$cache/build.log" >&2; exit 1; }
# The last image of this name.
buildah rmi --prune --force >/dev/null 2>&1 || true
echo "$image"
