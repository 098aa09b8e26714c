#include "stagecraft/actors/executor/nccl/ticket.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a ticket of which one number is another.
at::Tensor ticket_with(std::size_t place, std::int64_t value) {
  at::Tensor ticket = to_ticket(torch::zeros({4, 3}), 2);
  ticket[static_cast<std::int64_t>(place)] = value;
  return ticket;
}

TEST_CASE("a ticket tells number, type, sizes and strides", "[executor][nccl]") {
  const at::Tensor tensor = torch::zeros({2, 3, 4}, at::kBFloat16).permute({2, 0, 1});
  const Ticket told = read_ticket(to_ticket(tensor, 41), Rank(3));
  CHECK(told.number == 41);
  CHECK(told.dtype == at::kBFloat16);
  CHECK(told.sizes == std::vector<std::int64_t>{4, 2, 3});
  CHECK(told.strides == std::vector<std::int64_t>{1, 12, 4});
  CHECK(read_ticket(to_ticket(torch::zeros({}), 0), Rank(3)).sizes.empty());
  CHECK(read_ticket(to_ticket(torch::zeros({3, 0}), 0), Rank(3)).sizes.size() == 2);
}

TEST_CASE("what is no ticket is refused with its sender", "[executor][nccl][bad-input]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto refusal = [](const at::Tensor& ticket) {
    try {
      (void)read_ticket(ticket, Rank(3));
    } catch (const Error& error) {
      CHECK(error.code() == Errc::WireFormat);
      return error.message();
    }
    return std::string("nothing was refused");
  };
  CHECK(refusal(torch::zeros({6})) == "rank 3 announces a tensor by something else than a ticket");
  CHECK_THAT(refusal(torch::zeros({1}, at::kLong)), ContainsSubstring("something else"));
  CHECK_THAT(refusal(torch::zeros({5}, at::kLong)), ContainsSubstring("something else"));
  CHECK_THAT(refusal(torch::zeros({132}, at::kLong)), ContainsSubstring("something else"));
  CHECK_THAT(refusal(torch::zeros({2, 3}, at::kLong)), ContainsSubstring("something else"));
  CHECK_THAT(refusal(torch::zeros({12}, at::kLong).slice(0, 0, 12, 2)),
             ContainsSubstring("something else"));
  CHECK_THAT(refusal(ticket_with(1, 4711)), ContainsSubstring("type 4711"));
  CHECK_THAT(refusal(ticket_with(1, -1)), ContainsSubstring("type -1"));
  CHECK_THAT(refusal(ticket_with(2, -4)), ContainsSubstring("below 0"));
  CHECK_THAT(refusal(ticket_with(4, 2)), ContainsSubstring("dense"));      // a stride too small
  CHECK_THAT(refusal(ticket_with(2, kHuge)), ContainsSubstring("dense"));  // more than memory has
}

TEST_CASE("whatever a peer says is a dense tensor or refused", "[executor][nccl][bad-input]") {
  std::mt19937_64 random(7);
  constexpr int kTickets = 20000;
  int read = 0;
  for (int n = 0; n < kTickets; ++n) {
    at::Tensor ticket = to_ticket(torch::zeros({2, 3, 4}).permute({1, 2, 0}), n);
    auto* const numbers = ticket.mutable_data_ptr<std::int64_t>();
    const auto changed = 1 + random() % static_cast<unsigned>(ticket.numel() - 1);
    const auto bits = random() % 64;
    numbers[changed] = static_cast<std::int64_t>(random() >> bits);
    try {
      const Ticket told = read_ticket(ticket, Rank(0));
      const auto bytes = torch::empty_strided(
          told.sizes, told.strides, at::TensorOptions(at::kMeta).dtype(told.dtype));
      CHECK(bytes.is_non_overlapping_and_dense());
      ++read;
    } catch (const Error& error) {
      CHECK(error.code() == Errc::WireFormat);
    }
  }
  CHECK(read > 0);
  CHECK(read < kTickets);
}

}  // namespace
}  // namespace stagecraft
