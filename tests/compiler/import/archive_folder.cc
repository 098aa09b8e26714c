#include "stagecraft/tests/compiler/import/archive_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::testing {

using Json = nlohmann::json;

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path.string());
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

namespace {

std::vector<ArchiveFolder> read_folders() {
  std::vector<ArchiveFolder> folders;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/models")) {
    if (!std::filesystem::exists(entry.path() / "expected.json")) {
      continue;
    }
    const Json expected = Json::parse(file_bytes(entry.path() / "expected.json"));
    folders.push_back({.path = entry.path(),
                       .lr = expected.at("lr"),
                       .microbatches = expected.at("microbatches"),
                       .refused = expected.value("refused", ""),
                       .losses = expected.at("losses"),
                       .microbatch_losses = expected.at("microbatch_losses"),
                       .final = read_safetensors((entry.path() / "final.safetensors").string())});
  }
  std::ranges::sort(folders, {}, &ArchiveFolder::path);
  return folders;
}

}  // namespace

MicrobatchFiles ArchiveFolder::data() const {
  return MicrobatchFiles(unpacked_inputs(path));
}

const std::vector<ArchiveFolder>& archive_folders() {
  static const std::vector<ArchiveFolder> folders = read_folders();
  return folders;
}

}  // namespace stagecraft::testing
