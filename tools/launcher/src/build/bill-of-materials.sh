#!/bin/sh
# bill-of-materials.sh FOLDER [--workspace NAME]...: writes into FOLDER what of npm's packages these workspaces, or all,
# need, as CycloneDX, and the licences of these packages, whose code is bundled without them.
set -eu
folder=$1
shift
npm sbom --sbom-format=cyclonedx "$@" >"$folder/sbom.cdx.json"
# The same sources give the same file.
sed -i '/"serialNumber":/d; /"timestamp":/d' "$folder/sbom.cdx.json"
packages=$(npm ls --all --parseable "$@")
find $packages -maxdepth 1 -type f -iname 'licen[cs]e*' | sort | xargs tail -n +1 >"$folder/licenses.txt"
