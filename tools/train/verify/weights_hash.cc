#include "stagecraft/tools/train/verify/weights_hash.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "stagecraft/base/check.h"

namespace stagecraft::tools {

std::string weights_sha256(const NamedTensors& parameters) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  SC_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
           "SHA-256 could not be started");
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor bytes = tensor.detach().cpu().contiguous();
    SC_CHECK(EVP_DigestUpdate(context.get(), bytes.const_data_ptr(), bytes.nbytes()) == 1, name);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  SC_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1,
           "SHA-256 could not be finished");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

}  // namespace stagecraft::tools
