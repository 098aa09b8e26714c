#include "stagecraft/compiler/data/shards/shard_rows.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMostOpenFiles = 64;

std::string rows_text(const ShardArgument& argument) {
  return fmt::format("rows of {} [{}]", type_text(argument.dtype), fmt::join(argument.sizes, ", "));
}

/// Keeps HS-1.
void check_equal(const Shard& shard, const Shard& first) {
  const auto refuse_shard =
      [&](const std::string& file, const std::string& expected, const std::string& found) {
        throw Error(Errc::UsageFile,
                    fmt::format("{}: expected {}, as {} has them, found {}; all shards are alike",
                                file,
                                expected,
                                first.name,
                                found));
      };
  if (shard.arguments.size() != first.arguments.size()) {
    refuse_shard(shard.name,
                 count_text(first.arguments.size(), "argument"),
                 fmt::format("{}", shard.arguments.size()));
  }
  for (std::size_t i = 0; i < shard.arguments.size(); ++i) {
    const ShardArgument& a = shard.arguments[i];
    const ShardArgument& b = first.arguments[i];
    if (a.dtype != b.dtype || a.sizes != b.sizes) {
      refuse_shard(a.file, rows_text(b), rows_text(a));
    }
  }
}

/// Reads a row of tokens and makes each an int64.
template <class Token>
void read_tokens(TensorFile& file, std::uint64_t at, std::uint64_t bytes, char* to) {
  std::vector<Token> tokens(bytes / sizeof(Token));
  file.read_at(at, tokens.data(), bytes);
  for (const Token token : tokens) {
    const std::int64_t wide = token;
    std::memcpy(to, &wide, sizeof wide);
    to += sizeof wide;
  }
}

}  // namespace

ShardRows::ShardRows(std::vector<Shard> shards) : shards_(std::move(shards)) {
  std::int64_t rows = 0;
  for (const Shard& shard : shards_) {
    check_equal(shard, shards_.front());
    ends_.push_back(rows += shard.rows);
  }
}

std::pair<const Shard*, std::int64_t> ShardRows::place_of(std::int64_t row) const {
  const auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, row) - ends_.begin());
  return {&shards_[i], row - (i == 0 ? 0 : ends_[i - 1])};
}

const std::string& ShardRows::file(std::size_t argument, std::int64_t row) const {
  return place_of(row).first->arguments[argument].file;
}

TensorFile& ShardRows::opened(const std::string& path) {
  if (open_.size() == kMostOpenFiles && !open_.contains(path)) {
    open_.clear();
  }
  return open_.try_emplace(path, path).first->second;
}

at::Tensor ShardRows::read(std::size_t argument, std::span<const std::int64_t> rows) {
  const ShardArgument& all = arguments()[argument];
  std::vector<std::int64_t> sizes = all.sizes;
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(rows.size()));
  // A Boolean is a byte of 0 or 1 in memory, but may be any byte in a file.
  const bool truths = all.dtype == at::kBool;
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(truths ? at::kByte : all.dtype));
  auto* to = static_cast<char*>(tensor.data_ptr());
  for (const std::int64_t row : rows) {
    const auto [shard, number] = place_of(row);
    const ShardArgument& one = shard->arguments[argument];
    const std::uint64_t at = one.begin + static_cast<std::uint64_t>(number) * one.bytes;
    TensorFile& file = opened(one.file);
    switch (one.token_bytes) {
      case 0:
        file.read_at(at, to, one.bytes);
        break;
      case sizeof(std::uint16_t):
        read_tokens<std::uint16_t>(file, at, one.bytes, to);
        break;
      default:
        read_tokens<std::uint32_t>(file, at, one.bytes, to);
    }
    to += tensor.nbytes() / rows.size();
  }
  return truths ? tensor.to(at::kBool) : tensor;
}

}  // namespace stagecraft
