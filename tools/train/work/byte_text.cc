#include "stagecraft/tools/train/work/byte_text.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

[[noreturn]] void unreadable(const std::string& path, const std::string& found) {
  throw Error(
      Errc::UsageFile,
      fmt::format(
          "--text expects a readable file, found {} at '{}'; name another text with --text FILE",
          found,
          path));
}

constexpr std::size_t kChunk = std::size_t{1} << 20U;

std::vector<std::uint8_t> read_bytes(const std::string& path, double most) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    unreadable(path, "no file");
  }
  if (std::filesystem::is_directory(status)) {
    unreadable(path, "a directory");
  }
  if (std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status)) {
    unreadable(path, "a device");  // many devices have no end
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    unreadable(path, "a file that cannot be opened");
  }
  std::vector<std::uint8_t> bytes;
  while (file) {
    const std::size_t before = bytes.size();
    if (static_cast<double>(before) > most) {
      throw Error(Errc::DeviceOutOfMemory,
                  fmt::format("--text expects a text that fits into memory, found more than {} at "
                              "'{}'; name another text with --text FILE",
                              bytes_text(most),
                              path));
    }
    bytes.resize(before + kChunk);
    file.read(reinterpret_cast<char*>(bytes.data() + before), kChunk);
    bytes.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) {
    unreadable(path, "a file that could not be read to its end");
  }
  return bytes;
}

}  // namespace

ByteText ByteText::read(const std::string& path, std::int64_t length, double most) {
  std::vector<std::uint8_t> bytes = read_bytes(path, most);
  // One window and its last target need at least one place to start.
  const std::int64_t needed = length + 2;
  if (static_cast<std::int64_t>(bytes.size()) < needed) {
    throw Error(
        Errc::UsageFile,
        fmt::format(
            "--text expects at least {} bytes for windows of --seq {}, found {} at '{}'; give a "
            "longer text or a smaller --seq",
            needed,
            length,
            bytes.empty() ? "an empty file" : fmt::format("{} bytes", bytes.size()),
            path));
  }
  return {std::move(bytes), length};
}

ByteText::ByteText(std::vector<std::uint8_t> bytes, std::int64_t length)
    : length_(length), tokens_(std::move(bytes)) {
  std::array<bool, 256> present{};
  for (const std::uint8_t byte : tokens_) {
    present[byte] = true;
  }
  std::array<std::uint8_t, 256> token{};
  for (std::size_t byte = 0; byte < present.size(); ++byte) {
    if (present[byte]) {
      token[byte] = static_cast<std::uint8_t>(vocabulary_++);
    }
  }
  for (std::uint8_t& byte : tokens_) {
    byte = token[byte];
  }
}

TextBatch ByteText::batch(std::uint64_t seed, std::int64_t step, std::int64_t sequences) const {
  // Use a seed per step rather than one long stream: step n can be drawn without the n - 1 before
  // it.
  const std::uint64_t step_seed = seed * 7'919 + 17 + static_cast<std::uint64_t>(step);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(step_seed);
  const at::Tensor starts = at::randint(0, size() - length_ - 1, {sequences}, generator, at::kLong);
  TextBatch batch{at::empty({sequences, length_}, at::kLong),
                  at::empty({sequences, length_}, at::kLong)};
  const auto* start = starts.const_data_ptr<std::int64_t>();
  auto* tokens = batch.tokens.mutable_data_ptr<std::int64_t>();
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < sequences; ++row) {
    const std::uint8_t* window = tokens_.data() + start[row];
    for (std::int64_t i = 0; i < length_; ++i) {
      tokens[row * length_ + i] = window[i];
      targets[row * length_ + i] = window[i + 1];
    }
  }
  return batch;
}

}  // namespace stagecraft::tools
