/// Sha256 computes the checksum of a stream of bytes (FIPS 180-4) with OpenSSL.
#pragma once

#include <array>
#include <memory>
#include <span>

struct evp_md_ctx_st;

namespace stagecraft {

class Sha256 {
 public:
  using Digest = std::array<unsigned char, 32>;

  Sha256();

  void add(std::span<const char> bytes);

  /// Returns the checksum. Call it once, after everything was added.
  [[nodiscard]] Digest finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace stagecraft
