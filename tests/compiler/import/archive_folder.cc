#include "stagecraft/tests/compiler/import/archive_folder.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::testing {
namespace {

using Json = nlohmann::json;

at::Tensor tensor_of(std::string_view bytes,
                     at::ScalarType dtype,
                     const std::vector<std::int64_t>& sizes) {
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(dtype));
  REQUIRE(tensor.nbytes() == bytes.size());
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

/// What numpy.save writes: magic, version, the length of a header in Python's words, the bytes.
at::Tensor read_npy(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  constexpr std::size_t kBefore = 10;
  const std::size_t length =
      static_cast<unsigned char>(bytes.at(8)) +
      (static_cast<std::size_t>(static_cast<unsigned char>(bytes.at(9))) << 8);
  const std::string header = bytes.substr(kBefore, length);
  static const std::map<std::string, at::ScalarType> kTypes{{"<f4", at::kFloat},
                                                            {"<f8", at::kDouble},
                                                            {"<i8", at::kLong},
                                                            {"<i4", at::kInt},
                                                            {"|i1", at::kChar},
                                                            {"|u1", at::kByte},
                                                            {"|b1", at::kBool},
                                                            {"<c8", at::kComplexFloat}};
  const std::size_t type = header.find("'descr': '") + 10;
  const std::size_t open = header.find('(', header.find("'shape'"));
  std::vector<std::int64_t> sizes;
  std::string numbers = header.substr(open + 1, header.find(')', open) - open - 1);
  std::ranges::replace(numbers, ',', ' ');
  for (std::istringstream in(numbers); in;) {
    std::int64_t size = 0;
    if (in >> size) {
      sizes.push_back(size);
    }
  }
  return tensor_of(
      std::string_view(bytes).substr(kBefore + length), kTypes.at(header.substr(type, 3)), sizes);
}

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path) {
  const std::string bytes = file_bytes(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json header = Json::parse(bytes.substr(sizeof length, length));
  const std::string_view data = std::string_view(bytes).substr(sizeof length + length);
  static const std::map<std::string, at::ScalarType> kTypes{{"F32", at::kFloat},
                                                            {"F64", at::kDouble},
                                                            {"I64", at::kLong},
                                                            {"I32", at::kInt},
                                                            {"BOOL", at::kBool}};
  std::vector<NamedTensor> tensors;
  for (const auto& [name, facts] : header.items()) {
    const std::size_t begin = facts.at("data_offsets").at(0);
    const std::size_t end = facts.at("data_offsets").at(1);
    tensors.push_back({name,
                       tensor_of(data.substr(begin, end - begin),
                                 kTypes.at(facts.at("dtype")),
                                 facts.at("shape").get<std::vector<std::int64_t>>())});
  }
  return tensors;
}

}  // namespace

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  INFO(path.string());
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<at::Tensor> ArchiveFolder::arguments(int step, int microbatch) const {
  std::vector<at::Tensor> result;
  for (int i = 0;; ++i) {
    const auto file = path / fmt::format("step{}_mb{}_arg{}.npy", step, microbatch, i);
    if (!std::filesystem::exists(file)) {
      return result;
    }
    result.push_back(read_npy(file));
  }
}

Batch ArchiveFolder::batch(int step) const {
  std::vector<std::vector<at::Tensor>> parts;
  for (int m = 0; m < microbatches; ++m) {
    const std::vector<at::Tensor> given = arguments(step, m);
    parts.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      parts[i].push_back(given[i]);
    }
  }
  Batch batch;
  for (const std::vector<at::Tensor>& part : parts) {
    batch.emplace_back(part[0].dim() == 0 ? at::stack(part) : at::cat(part));
  }
  return batch;
}

std::vector<ArchiveFolder> archive_folders() {
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
                       .final = read_safetensors(entry.path() / "final.safetensors")});
  }
  std::ranges::sort(folders, {}, &ArchiveFolder::path);
  return folders;
}

}  // namespace stagecraft::testing
