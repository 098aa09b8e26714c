#include "stagecraft/tools/doctor/facts/names.h"

#include <sys/socket.h>

#include <array>
#include <memory>
#include <set>

#include <netdb.h>

namespace stagecraft::tools {
namespace {

std::vector<std::string> digits_of(const addrinfo* addresses) {
  std::set<std::string> all;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(
            one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      all.insert(text.data());
    }
  }
  return {all.begin(), all.end()};
}

void wait(const std::vector<gaicb*>& requests, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (gaicb* const request : requests) {
    while (gai_error(request) == EAI_INPROGRESS) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) {
        return;
      }
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      const timespec limit{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
      const std::array<const gaicb*, 1> one{request};
      gai_suspend(one.data(), 1, &limit);
    }
  }
}

}  // namespace

KnownNames resolve(const std::vector<std::string>& names, std::chrono::milliseconds patience) {
  // A request that is still in progress keeps reading these objects: never free them then.
  struct Asked {
    std::string name;
    addrinfo hints{};
    gaicb request{};
  };
  std::vector<std::unique_ptr<Asked>> asked;
  std::vector<gaicb*> requests;
  for (const std::string& name : names) {
    asked.push_back(std::make_unique<Asked>(Asked{.name = name}));
    Asked& one = *asked.back();
    one.hints.ai_socktype = SOCK_STREAM;
    one.request.ar_name = one.name.c_str();
    one.request.ar_request = &one.hints;
    requests.push_back(&one.request);
  }
  KnownNames known;
  if (requests.empty() ||
      getaddrinfo_a(GAI_NOWAIT, requests.data(), static_cast<int>(requests.size()), nullptr) != 0) {
    return known;
  }
  wait(requests, patience);
  for (std::unique_ptr<Asked>& one : asked) {
    const int end = gai_error(&one->request);
    if (end == EAI_INPROGRESS) {
      static_cast<void>(one.release());
    } else if (end == 0) {
      known.emplace(one->name, digits_of(one->request.ar_result));
      freeaddrinfo(one->request.ar_result);
    }
  }
  return known;
}

}  // namespace stagecraft::tools
