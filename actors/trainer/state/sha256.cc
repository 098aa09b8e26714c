#include "stagecraft/actors/trainer/state/sha256.h"

#include <openssl/evp.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  SC_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "SHA-256 begins");
}

Sha256::Sha256(const Sha256& other) : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  SC_CHECK(EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()) == 1, "SHA-256 is copied");
}

void Sha256::add(std::span<const char> bytes) {
  SC_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, "SHA-256 continues");
}

Sha256::Digest Sha256::finish() {
  Digest digest{};
  SC_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1, "SHA-256 ends");
  return digest;
}

}  // namespace stagecraft
