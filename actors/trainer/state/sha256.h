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
  /// Copies what was added so far.
  Sha256(const Sha256& other);
  Sha256(Sha256&&) = default;
  Sha256& operator=(const Sha256&) = delete;
  Sha256& operator=(Sha256&&) = default;
  ~Sha256() = default;

  void add(std::span<const char> bytes);

  /// Returns the checksum. Call it once, after everything was added.
  [[nodiscard]] Digest finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace stagecraft
