#!/usr/bin/env bash
# Builds what the end-to-end suites run: etcd, kube-apiserver, kube-controller-manager and kubectl (one binary of ours
# that imports their modules), kwok and CoreDNS. They land in .cache/e2e/bin, each with a stamp; what is there with the
# same stamp is skipped. Go's own caches make a second build on the same machine a matter of linking.
#
#   test/e2e/parts/build.sh            everything
#   test/e2e/parts/build.sh kwok ...   these only
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
bin=$(cd ../../.. && pwd)/.cache/e2e/bin
kwok_version=v0.7.0
coredns_version=v1.15.0

if ! command -v go >/dev/null; then
  echo "Go is not installed: the parts of the clusters cannot be built" >&2
  exit 1
fi
# Go fetches a newer one by itself since 1.21. An older one, as Debian 12 has it, can fetch it as a module.
newer_go=v0.0.1-go1.26.0.$(go env GOOS)-$(go env GOARCH)
if [[ $(go env GOVERSION) =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -lt 21 ]; then
  folder=$(cd / && go mod download -json "golang.org/toolchain@$newer_go" | sed -n 's|^\s*"Dir": "\(.*\)".*|\1|p')
  # Modules are kept read-only, and without the right to be run.
  chmod -R u+w "$folder"
  chmod u+x "$folder"/bin/* "$folder"/pkg/tool/*/*
  export PATH="$folder/bin:$PATH"
  unset GOROOT
fi
mkdir -p "$bin"
# One build at a time in this clone: a second one waits, and then finds everything there.
exec 9>"$bin/.lock"
flock 9

go_version=$(go env GOVERSION)
# What we do not look at needs no symbols: less to link and to keep.
link='-s -w'

# build NAME WHAT_ITS_STAMP_SAYS COMMAND...: the command puts the binary at "$bin/NAME.new".
build() {
  local name=$1 stamp="$go_version $2" started=$SECONDS
  shift 2
  if [ -x "$bin/$name" ] && [ "$(cat "$bin/$name.stamp" 2>/dev/null)" = "$stamp" ]; then
    echo "$name: there already"
    return
  fi
  echo "$name: building"
  "$@"
  mv -f "$bin/$name.new" "$bin/$name"
  printf '%s\n' "$stamp" >"$bin/$name.stamp"
  echo "$name: built in $((SECONDS - started)) s, $(du -h "$bin/$name" | cut -f 1)"
}

# A main of ours: the versions are in its go.mod, and its sums in go.sum.
build_control_plane() {
  local version=k8s.io/component-base/version
  (cd "$here/control-plane" && go build -buildvcs=false -ldflags \
    "$link -X $version.gitVersion=$kubernetes_version -X $version.gitMajor=1 -X $version.gitMinor=${kubernetes_minor}" \
    -o "$bin/control-plane.new" .)
}

# A module's own main, by its version.
install_module() {
  local folder="$bin/.install"
  rm -rf "$folder"
  GOBIN="$folder" go install -buildvcs=false -ldflags "$link" "$2"
  mv "$folder/$1" "$bin/$1.new"
  rm -rf "$folder"
}

kubernetes_version=$(sed -n 's|^\s*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' control-plane/go.mod)
kubernetes_minor=$(cut -d . -f 2 <<<"$kubernetes_version")

[ $# -gt 0 ] || set -- control-plane kwok coredns
for part in "$@"; do
  case $part in
    control-plane)
      build control-plane "$(cat <(echo "$link") control-plane/{main.go,go.mod,go.sum} | sha256sum | cut -d ' ' -f 1)" build_control_plane
      # It takes its part from the name it is called by.
      for name in etcd kube-apiserver kube-controller-manager kubectl; do ln -sfn control-plane "$bin/$name"; done
      ;;
    kwok) build kwok "$kwok_version" install_module kwok "sigs.k8s.io/kwok/cmd/kwok@$kwok_version" ;;
    coredns) build coredns "$coredns_version" install_module coredns "github.com/coredns/coredns@$coredns_version" ;;
    *)
      echo "no part is called $part" >&2
      exit 2
      ;;
  esac
done
