#include "stagecraft/actors/security/certificate_facts.h"

#include <array>
#include <ctime>
#include <span>

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace stagecraft::security {
namespace {

/// Other clusters' certificates may contain anything, and these texts are printed.
std::string printable(std::span<const unsigned char> text) {
  std::string made;
  for (const unsigned char c : text) {
    made += c >= 0x20 && c < 0x7f ? static_cast<char>(c) : '?';
  }
  return made;
}

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
  std::string part_text = printable({text, static_cast<std::size_t>(size)});
  OPENSSL_free(text);
  return part_text;
}

/// Returns the only alternative name, if it is a URI; else an empty text.
std::string only_uri(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) {
    (void)openssl_reason();
    return "";
  }
  const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) {
    return "";
  }
  const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
  return printable({ASN1_STRING_get0_data(uri), static_cast<std::size_t>(ASN1_STRING_length(uri))});
}

/// Keeps HR-1.
Role role_in(const X509* certificate, const std::string& cluster, const std::string& name) {
  const std::string uri = only_uri(certificate);
  for (const Role role : {Role::Authority, Role::Driver, Role::Worker}) {
    if (uri == role_uri(role, cluster, name)) {
      return role;
    }
  }
  return Role::None;
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

}  // namespace

std::string fingerprint_of(const x509_st& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require_openssl(X509_digest(&certificate, EVP_sha256(), digest.data(), &size) == 1,
                  "a fingerprint");
  std::string text;
  for (const unsigned char byte : std::span(digest).first(size)) {
    text += fmt::format("{}{:02X}", text.empty() ? "" : ":", byte);
  }
  return text;
}

CertificateFacts facts_of(const Certificate& certificate) {
  const X509* const x = certificate.get();
  const std::string cluster = subject_part(x, NID_organizationName);
  const std::string name = subject_part(x, NID_commonName);
  return {.role = role_in(x, cluster, name),
          .cluster = cluster,
          .name = name,
          .serial = serial_of(x),
          .fingerprint = fingerprint_of(*x),
          .valid_from = time_of(X509_get0_notBefore(x)),
          .valid_until = time_of(X509_get0_notAfter(x))};
}

std::string role_uri(Role role, const std::string& cluster, const std::string& name) {
  const std::string inside = "stagecraft://" + cluster + "/";
  return role == Role::Worker ? inside + "worker/" + name
                              : inside + (role == Role::Driver ? "driver" : "authority");
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
