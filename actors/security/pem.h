/// pem holds certificates and private keys as OpenSSL does, and reads and writes the PEM text of
/// their files.
///
/// Reading describes the faults of a file in our words, before a TLS library reads the file. It
/// never asks for a passphrase. Thread: any; OpenSSL's queue of errors is empty afterwards.
#pragma once

#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace stagecraft::security {

struct FreeCertificate {
  void operator()(x509_st* certificate) const;
};
struct FreeKey {
  void operator()(evp_pkey_st* key) const;
};
using Certificate = std::unique_ptr<x509_st, FreeCertificate>;
using PrivateKey = std::unique_ptr<evp_pkey_st, FreeKey>;

/// SecretText is text that contains a private key: the destructor overwrites it.
class SecretText {
 public:
  explicit SecretText(std::string text) : text_(std::move(text)) {}
  ~SecretText();
  SecretText(SecretText&&) = default;
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  SecretText& operator=(SecretText&&) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Returns the one certificate of `text`; messages call it `path`.
/// Errors: UsageFile for text that is empty, no PEM, cut short, damaged, or has another number of
///         certificates.
[[nodiscard]] Certificate certificate_of_pem(const std::string& path, const std::string& text);

/// Returns the one private key of `text`. Errors: as above, and for a key under a passphrase.
[[nodiscard]] PrivateKey key_of_pem(const std::string& path, const SecretText& text);

[[nodiscard]] std::string to_pem(const Certificate& certificate);
[[nodiscard]] SecretText to_pem(const PrivateKey& key);

/// Returns the reason why the last call of OpenSSL failed, and empties its queue of errors, because
/// TLS on this thread would take errors left there for its own.
[[nodiscard]] std::string openssl_reason();

/// Throws Internal, with OpenSSL's reason, unless `good`. For calls that fail only for lack of
/// memory or random numbers.
void require_openssl(bool good, const char* what);

}  // namespace stagecraft::security
