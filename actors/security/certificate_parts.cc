#include "stagecraft/actors/security/certificate_parts.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace stagecraft::security {
namespace {

constexpr int kSerialBits = 128;

void set_serial(X509* certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(BN_new(), &BN_free);
  require_openssl(
      number != nullptr &&
          BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
          BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
      "a serial number");
}

void set_validity(X509* certificate, TimePoint from, TimePoint until) {
  using std::chrono::system_clock;
  require_openssl(
      ASN1_TIME_set(X509_getm_notBefore(certificate), system_clock::to_time_t(from)) != nullptr &&
          ASN1_TIME_set(X509_getm_notAfter(certificate), system_clock::to_time_t(until)) != nullptr,
      "the validity of a certificate");
}

void add_name(X509_NAME* name, int part, const std::string& text) {
  require_openssl(X509_NAME_add_entry_by_NID(name,
                                             part,
                                             MBSTRING_UTF8,
                                             reinterpret_cast<const unsigned char*>(text.data()),
                                             static_cast<int>(text.size()),
                                             -1,
                                             0) == 1,
                  "the name of a certificate");
}

}  // namespace

PrivateKey new_key() {
  PrivateKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "prime256v1"));
  require_openssl(key != nullptr, "a private key");
  return key;
}

Certificate unsigned_certificate(const PrivateKey& key,
                                 const std::string& organization,
                                 const std::string& name,
                                 TimePoint valid_from,
                                 TimePoint valid_until) {
  Certificate certificate(X509_new());
  require_openssl(certificate != nullptr &&
                      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                      X509_set_pubkey(certificate.get(), key.get()) == 1,
                  "a certificate");
  set_serial(certificate.get());
  set_validity(certificate.get(), valid_from, valid_until);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  add_name(subject, NID_organizationName, organization);
  add_name(subject, NID_commonName, name);
  return certificate;
}

void set_issuer(const Certificate& certificate, const Certificate& issuer) {
  require_openssl(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer.get())) == 1,
                  "an issuer's name");
}

void add_extension(const Certificate& certificate,
                   const Certificate& issuer,
                   int kind,
                   const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer.get(), certificate.get(), nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), &X509_EXTENSION_free);
  require_openssl(extension != nullptr && X509_add_ext(certificate.get(), extension.get(), -1) == 1,
                  "an extension of a certificate");
}

void sign(const Certificate& certificate, const PrivateKey& key) {
  require_openssl(X509_sign(certificate.get(), key.get(), EVP_sha256()) != 0,
                  "the signature of a certificate");
}

}  // namespace stagecraft::security
