#include "stagecraft/actors/security/pem.h"

#include <string_view>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "stagecraft/base/error.h"

namespace stagecraft::security {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

constexpr std::string_view kAgain =
    "copy the folder again from where it was made, or make another there with stagecraft "
    "credentials renew";

[[noreturn]] void unusable(const std::string& path, const std::string& found) {
  throw Error(Errc::UsageFile, fmt::format("'{}' {}; {}", path, found, kAgain));
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    ++found;
  }
  return found;
}

/// `kind`: as in "a certificate". `ending`: the end of the lines that begin and end the block.
struct Block {
  std::string_view kind, ending, other_kind, other_ending;
};

constexpr Block kCertificate{"certificate", "CERTIFICATE-----", "private key", "PRIVATE KEY-----"};
constexpr Block kKey{"private key", "PRIVATE KEY-----", "certificate", "CERTIFICATE-----"};

/// Reports the faults that the text itself shows. No message contains a part of it.
void check_blocks(const std::string& path, const std::string& text, const Block& block) {
  if (text.empty()) {
    unusable(path, fmt::format("is empty, expected a {}", block.kind));
  }
  const std::size_t begun = count(text, "-----BEGIN ");
  if (begun == 0) {
    unusable(path,
             fmt::format("is not PEM: expected a {} that begins with -----BEGIN", block.kind));
  }
  if (count(text, "-----END ") < begun ||
      text.find("-----", text.rfind("-----END ") + 9) == std::string::npos) {
    unusable(path, fmt::format("is cut short: its {} has no end", block.kind));
  }
  const std::size_t whole = count(text, block.ending) / 2;
  if (whole == 0) {
    const bool other = count(text, block.other_ending) > 0;
    unusable(path,
             fmt::format("holds {}, expected a {}",
                         other ? fmt::format("a {}", block.other_kind) : "something else",
                         block.kind));
  }
  if (whole > 1) {
    unusable(path, fmt::format("holds {} {}s, expected one", whole, block.kind));
  }
}

Bio memory_of(const std::string& text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  require_openssl(bio != nullptr, "memory for PEM");
  return bio;
}

int no_passphrase(char*, int, int, void*) {
  return -1;
}

/// Returns the text written to `bio`.
std::string text_of(const Bio& bio) {
  char* begin = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &begin);
  return {begin, static_cast<std::size_t>(size)};
}

}  // namespace

void FreeCertificate::operator()(x509_st* certificate) const {
  X509_free(certificate);
}

void FreeKey::operator()(evp_pkey_st* key) const {
  EVP_PKEY_free(key);
}

SecretText::~SecretText() {
  OPENSSL_cleanse(text_.data(), text_.size());
}

Certificate certificate_of_pem(const std::string& path, const std::string& text) {
  check_blocks(path, text, kCertificate);
  const Bio bio = memory_of(text);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, &no_passphrase, nullptr));
  if (certificate == nullptr) {
    unusable(path, fmt::format("is a damaged certificate ({})", openssl_reason()));
  }
  return certificate;
}

PrivateKey key_of_pem(const std::string& path, const SecretText& secret) {
  const std::string& text = secret.text();
  check_blocks(path, text, kKey);
  if (text.find("ENCRYPTED") != std::string::npos) {
    throw Error(Errc::UsageFile,
                fmt::format("'{0}' is protected by a passphrase, which a worker cannot ask for; "
                            "remove it, in a folder that nobody else can read: openssl pkey -in "
                            "'{0}' -out key.pem",
                            path));
  }
  const Bio bio = memory_of(text);
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_passphrase, nullptr));
  if (key == nullptr) {
    unusable(path, fmt::format("is a damaged private key ({})", openssl_reason()));
  }
  return key;
}

std::string to_pem(const Certificate& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  require_openssl(bio != nullptr && PEM_write_bio_X509(bio.get(), certificate.get()) == 1,
                  "a certificate as PEM");
  return text_of(bio);
}

SecretText to_pem(const PrivateKey& key) {
  const Bio bio(BIO_new(BIO_s_secmem()));  // overwrites its memory when freed
  require_openssl(
      bio != nullptr && PEM_write_bio_PrivateKey(
                            bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
      "a private key as PEM");
  return SecretText(text_of(bio));
}

std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

void require_openssl(bool good, const char* what) {
  if (!good) {
    throw Error(
        Errc::Internal,
        fmt::format("OpenSSL could not make {}: {}; check that this machine has free memory "
                    "and that the configuration of OpenSSL is valid",
                    what,
                    openssl_reason()));
  }
}

}  // namespace stagecraft::security
