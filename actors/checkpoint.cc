#include "stagecraft/actors/checkpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <msgpack.hpp>

#include "stagecraft/actors/sealed_file.h"
#include "stagecraft/actors/sha256.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::string_view kMagic = "STGCRAFT";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kPreamble = 24;
constexpr std::size_t kAlignment = 64;
constexpr std::array<char, kAlignment> kZeros{};
constexpr std::size_t kDigest = std::tuple_size_v<Sha256::Digest>;

struct TensorEntry {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;

  MSGPACK_DEFINE(name, type, shape, bytes)
};

struct Header {
  std::int64_t step = 0;
  std::uint64_t seed = 0;
  std::string optimizer;
  std::vector<TensorEntry> tensors;

  MSGPACK_DEFINE(step, seed, optimizer, tensors)
};

constexpr std::size_t aligned(std::size_t at) {
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

// ---- types by name ------------------------------------------------------------------------------

constexpr std::array kTypes{at::kFloat,
                            at::kDouble,
                            at::kHalf,
                            at::kBFloat16,
                            at::kLong,
                            at::kInt,
                            at::kShort,
                            at::kChar,
                            at::kByte,
                            at::kBool};

std::optional<at::ScalarType> type_named(std::string_view name) {
  for (const at::ScalarType type : kTypes) {
    if (name == c10::toString(type)) {
      return type;
    }
  }
  return std::nullopt;
}

// ---- writing ------------------------------------------------------------------------------------

std::array<char, 8> little_endian(std::uint64_t value) {
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xFFU);
    value >>= 8U;
  }
  return bytes;
}

std::span<const char> bytes_of_tensor(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// ---- reading ------------------------------------------------------------------------------------

[[noreturn]] void throw_format(const std::string& path, const std::string& found) {
  throw Error(
      Errc::CheckpointFormat,
      fmt::format(
          "{} is no checkpoint that can be used: {}; use one that Trainer::save wrote, or an "
          "older copy",
          path,
          found));
}

std::vector<char> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  std::error_code fault;
  const auto size = std::filesystem::file_size(path, fault);
  if (!file || fault) {
    throw Error(Errc::UsageFile,
                fmt::format("the checkpoint {} cannot be read: {}",
                            path,
                            fault ? fault.message() : std::strerror(errno)));
  }
  std::vector<char> bytes(size);
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    throw_format(path, "it ended while it was read");
  }
  return bytes;
}

std::uint64_t little_endian_at(std::span<const char> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// Returns all but the checksum, once that is right.
std::span<const char> checked_content(const std::string& path, const std::vector<char>& file) {
  if (file.size() < kPreamble + kDigest ||
      !std::string_view(file.data(), file.size()).starts_with(kMagic)) {
    throw_format(path, "it does not begin as one");
  }
  const std::span<const char> content(file.data(), file.size() - kDigest);
  const std::uint64_t version = little_endian_at(content, 8);
  if (version != kVersion) {
    throw_format(
        path,
        fmt::format("its format is version {}, this program knows version {}", version, kVersion));
  }
  Sha256 sha;
  sha.add(content);
  const Sha256::Digest digest = sha.finish();
  if (std::memcmp(digest.data(), file.data() + content.size(), kDigest) != 0) {
    throw_format(path, "its checksum is wrong, so it was cut short or changed");
  }
  return content;
}

Header read_header(const std::string& path, std::span<const char> content) {
  const std::uint64_t length = little_endian_at(content, 16);
  if (length > content.size() - kPreamble) {
    throw_format(path, "its header is longer than the file");
  }
  try {
    Header header;
    msgpack::unpack(content.data() + kPreamble, static_cast<std::size_t>(length))
        .get()
        .convert(header);
    return header;
  } catch (const std::exception& error) {
    throw_format(path, fmt::format("its header cannot be read ({})", error.what()));
  }
}

at::Tensor read_tensor(const std::string& path,
                       const TensorEntry& entry,
                       std::span<const char> content,
                       std::size_t at) {
  const auto type = type_named(entry.type);
  std::uint64_t bytes = type ? c10::elementSize(*type) : 0;
  for (const std::int64_t extent : entry.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      throw_format(path, fmt::format("the shape of {} is no shape", entry.name));
    }
  }
  if (!type || bytes != entry.bytes || at > content.size() || bytes > content.size() - at) {
    throw_format(path, fmt::format("the entry of {} contradicts itself", entry.name));
  }
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions(*type));
  if (bytes > 0) {
    std::memcpy(tensor.mutable_data_ptr(), content.data() + at, bytes);
  }
  return tensor;
}

std::string shape_text(std::string_view type, at::IntArrayRef shape) {
  return fmt::format("{} [{}]", type, fmt::join(shape, ", "));
}

[[noreturn]] void throw_mismatch(const std::string& what) {
  throw Error(Errc::CheckpointMismatch, what);
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Header header{.step = checkpoint.step,
                .seed = checkpoint.seed,
                .optimizer = checkpoint.optimizer,
                .tensors = {}};
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    tensors.push_back(tensor.contiguous());
    header.tensors.push_back({.name = name,
                              .type = c10::toString(tensor.scalar_type()),
                              .shape = tensor.sizes().vec(),
                              .bytes = tensors.back().nbytes()});
  }
  msgpack::sbuffer packed;
  msgpack::pack(packed, header);

  SealedFile file(path);
  file.add(kMagic);
  file.add(little_endian(kVersion));
  file.add(little_endian(packed.size()));
  file.add({packed.data(), packed.size()});
  for (const at::Tensor& tensor : tensors) {
    file.add(std::span(kZeros).first(aligned(file.size()) - file.size()));
    file.add(bytes_of_tensor(tensor));
  }
  file.seal();  // keeps CK-1
}

Checkpoint read_checkpoint(const std::string& path) {
  const std::vector<char> file = read_file(path);
  const std::span<const char> content = checked_content(path, file);
  const Header header = read_header(path, content);
  Checkpoint checkpoint{
      .step = header.step, .seed = header.seed, .optimizer = header.optimizer, .tensors = {}};
  std::size_t at = kPreamble + static_cast<std::size_t>(little_endian_at(content, 16));
  for (const TensorEntry& entry : header.tensors) {
    at = aligned(at);
    checkpoint.tensors.push_back({entry.name, read_tensor(path, entry, content, at)});
    at += static_cast<std::size_t>(entry.bytes);
  }
  if (at != content.size()) {
    throw_format(path, "it has more in it than its header says");
  }
  return checkpoint;
}

void check_same_model(const Checkpoint& found, const ExpectedState& expected) {
  if (found.optimizer != expected.optimizer) {
    throw_mismatch(fmt::format(
        "the checkpoint is of the optimizer {}, the trainer uses {}: make the trainer with the "
        "same one",
        found.optimizer,
        expected.optimizer));
  }
  if (found.seed != expected.seed) {
    throw_mismatch(fmt::format(
        "the checkpoint's random numbers are those of seed {}, the trainer's of seed {}: make "
        "the trainer with seed {}",
        found.seed,
        expected.seed,
        found.seed));
  }
  std::map<std::string, std::string> extra;
  for (const auto& [name, tensor] : found.tensors) {
    extra[name] = shape_text(c10::toString(tensor.scalar_type()), tensor.sizes());
  }
  const std::map<std::string, std::string> shapes = extra;
  for (const auto& [name, type, shape] : expected.tensors) {
    const auto same = shapes.find(name);
    if (same == shapes.end()) {
      throw_mismatch(
          fmt::format("the checkpoint is of another model or optimizer: it has no {}", name));
    }
    if (same->second != shape_text(type, shape)) {
      throw_mismatch(
          fmt::format("the checkpoint is of another model: its {} is {}, the trainer's is {}",
                      name,
                      same->second,
                      shape_text(type, shape)));
    }
    extra.erase(name);
  }
  if (!extra.empty()) {
    throw_mismatch(fmt::format(
        "the checkpoint is of another model or optimizer: it has {}, the trainer has not",
        extra.begin()->first));
  }
}

}  // namespace stagecraft
