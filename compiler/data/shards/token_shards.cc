#include "stagecraft/compiler/data/shards/token_shards.h"

#include <array>

#include <fmt/format.h>

#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

namespace stagecraft {
namespace {

constexpr std::uint64_t kTokenHeaderBytes = 1024;

struct TokenKind {
  std::int32_t magic, version;
  std::uint64_t bytes;  ///< of a token
};
constexpr std::array<TokenKind, 2> kTokenKinds{{{20240520, 1, 2}, {20240801, 7, 4}}};

struct TokenRun {
  std::uint64_t begin = 0;  ///< in bytes
  std::uint64_t bytes = 2;  ///< of a token
  std::uint64_t count = 0;
};

/// Returns the tokens behind the header, if the file begins with one.
TokenRun tokens_in(const std::string& path) {
  TensorFile file(path);
  TokenRun tokens;
  std::array<std::int32_t, 3> header{};
  if (file.size() >= kTokenHeaderBytes) {
    file.read(header.data(), sizeof header);
  }
  for (const TokenKind& kind : kTokenKinds) {
    if (header[0] != kind.magic) {
      continue;
    }
    if (header[1] != kind.version) {
      file.refuse(fmt::format("version {} behind the magic number {}", kind.version, kind.magic),
                  fmt::format("{}", header[1]));
    }
    tokens = {.begin = kTokenHeaderBytes, .bytes = kind.bytes};
  }
  const std::uint64_t left = file.size() - tokens.begin;
  tokens.count = left / tokens.bytes;
  if (left % tokens.bytes != 0) {
    file.refuse(fmt::format("tokens of {} bytes", tokens.bytes),
                fmt::format("{} bytes of them", left));
  }
  if (tokens.begin > 0 &&
      (header[2] < 0 || static_cast<std::uint64_t>(header[2]) != tokens.count)) {
    file.refuse(fmt::format("{} tokens, as the header says", header[2]),
                fmt::format("{}", tokens.count));
  }
  return tokens;
}

}  // namespace

std::vector<Shard> token_shards(const std::string& folder,
                                const std::vector<std::string>& names,
                                std::int64_t window,
                                int arguments) {
  const auto taken = static_cast<std::uint64_t>(window);
  const auto targets = static_cast<std::uint64_t>(arguments - 1);  // tokens behind the last window
  std::vector<Shard> shards;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const TokenRun tokens = tokens_in(path);
    Shard& shard = shards.emplace_back(Shard{.name = path});
    shard.rows =
        tokens.count < targets ? 0 : static_cast<std::int64_t>((tokens.count - targets) / taken);
    for (std::uint64_t later = 0; later <= targets; ++later) {
      shard.arguments.push_back({.file = path,
                                 .begin = tokens.begin + later * tokens.bytes,
                                 .bytes = taken * tokens.bytes,
                                 .dtype = at::kLong,
                                 .sizes = {window},
                                 .token_bytes = tokens.bytes});
    }
  }
  return shards;
}

}  // namespace stagecraft
