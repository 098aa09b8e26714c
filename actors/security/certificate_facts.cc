#include "stagecraft/actors/security/certificate_facts.h"

#include <array>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace stagecraft::security {
namespace {

std::string subject_part(const X509* certificate, int part) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, part, -1);
  if (at < 0) {
    return "";
  }
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) {
    (void)openssl_reason();
    return "";
  }
  // Other clusters' certificates may contain anything, and this text is printed.
  std::string part_text;
  for (const unsigned char c : std::span(text, static_cast<std::size_t>(size))) {
    part_text += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '?';
  }
  OPENSSL_free(text);
  return part_text;
}

TimePoint time_of(const ASN1_TIME* time) {
  std::tm broken{};
  require_openssl(ASN1_TIME_to_tm(time, &broken) == 1, "a time of a certificate");
  return std::chrono::system_clock::from_time_t(timegm(&broken));
}

std::string serial_of(const X509* certificate) {
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr), &BN_free);
  require_openssl(number != nullptr, "a serial number");
  char* const text = BN_bn2hex(number.get());
  require_openssl(text != nullptr, "a serial number");
  std::string serial = text;
  OPENSSL_free(text);
  return serial;
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require_openssl(X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1,
                  "a fingerprint");
  std::string text;
  for (const unsigned char byte : std::span(digest).first(size)) {
    text += fmt::format("{}{:02X}", text.empty() ? "" : ":", byte);
  }
  return text;
}

}  // namespace

CertificateFacts facts_of(const Certificate& certificate) {
  const X509* const x = certificate.get();
  return {.cluster = subject_part(x, NID_organizationName),
          .name = subject_part(x, NID_commonName),
          .serial = serial_of(x),
          .fingerprint = fingerprint_of(x),
          .valid_from = time_of(X509_get0_notBefore(x)),
          .valid_until = time_of(X509_get0_notAfter(x))};
}

std::string utc_text(TimePoint time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm broken{};
  gmtime_r(&seconds, &broken);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
                     broken.tm_year + 1900,
                     broken.tm_mon + 1,
                     broken.tm_mday,
                     broken.tm_hour,
                     broken.tm_min,
                     broken.tm_sec);
}

}  // namespace stagecraft::security
