#include <cstdint>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/tests/conformance/transport_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::conformance {
namespace {

/// Sends the tensor, with its receive posted before or after, and checks that it arrives.
bool passes(const Endpoints& net, const at::Tensor& sent, bool posted_first) {
  Future<at::Tensor> arrival;
  if (posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  }
  net.ranks[0]->send(Rank{1}, on_edge(3), sent);
  if (!posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  }
  return arrival.wait_until(patience()) && arrives_whole(sent, arrival.get());
}

void every_dtype(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  for (const at::ScalarType dtype : {at::kByte,
                                     at::kChar,
                                     at::kShort,
                                     at::kInt,
                                     at::kLong,
                                     at::kUInt16,
                                     at::kUInt32,
                                     at::kUInt64,
                                     at::kHalf,
                                     at::kBFloat16,
                                     at::kFloat,
                                     at::kDouble,
                                     at::kComplexHalf,
                                     at::kComplexFloat,
                                     at::kComplexDouble,
                                     at::kFloat8_e5m2,
                                     at::kFloat8_e4m3fn,
                                     at::kFloat8_e5m2fnuz,
                                     at::kFloat8_e4m3fnuz,
                                     at::kFloat8_e8m0fnu}) {
    for (const std::int64_t bytes : {96L, 96L * 1024}) {
      INFO(c10::toString(dtype) << ", " << bytes << " bytes");
      const at::Tensor sent = bytes_from(bytes).view(dtype);
      net.ranks[0]->send(Rank{1}, on_edge(3), sent);
      const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
      REQUIRE(arrival.wait_until(patience()));
      CHECK(arrival.get().scalar_type() == dtype);
      CHECK(at::equal(arrival.get().view(at::kByte), sent.view(at::kByte)));
    }
  }
  CHECK(passes(net, at::arange(7, at::kLong).gt(2), false));
}

void every_stride(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const at::Tensor image = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  const at::Tensor complex = bytes_from(64).bitwise_and(63).view(at::kComplexFloat);
  for (const at::Tensor& sent : {image.transpose(1, 3),
                                 image.slice(2, 1, 4, 2),
                                 image.slice(0, 0, 0),
                                 image.select(3, 2),
                                 image.contiguous(at::MemoryFormat::ChannelsLast),
                                 at::ones({3, 1}).expand({3, 70000}),
                                 at::arange(1 << 20, at::kLong).view({1 << 10, 1 << 10}).t(),
                                 at::empty({0, 0}),
                                 at::empty({1, 0, 1 << 30}),
                                 at::ones({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                                 complex.conj(),
                                 at::imag(complex.conj())}) {
    INFO(sent.sizes());
    CHECK(passes(net, sent, true));
  }
}

void every_size(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  constexpr std::int64_t kKi = 1024;
  for (const std::int64_t size : {1L,
                                  2L,
                                  63L,
                                  64L,
                                  4 * kKi - 1,
                                  4 * kKi + 1,
                                  256 * kKi - 1,
                                  256 * kKi,
                                  256 * kKi + 1,
                                  1024 * kKi,
                                  1024 * kKi + 1,
                                  10000 * kKi + 7}) {
    INFO(size << " bytes");
    CHECK(passes(net, bytes_from(size), true));
    CHECK(passes(net, bytes_from(size, 1), false));
  }
}

void lent_tensors(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const at::Tensor lendable = net.ranks[0]->lendable(300'000, at::kFloat);
  CHECK(at::equal(lendable, at::zeros({300'000}, at::kFloat)));
  lendable.copy_(at::arange(300'000, at::kFloat));
  for (const at::Tensor& lent : {lendable,
                                 lendable.narrow(0, 100'016, 100'000),
                                 lendable.narrow(0, 7, 3),
                                 lendable.narrow(0, 0, 0),
                                 bytes_from(100'000)}) {
    INFO(lent.nbytes() << " bytes");
    net.ranks[0]->lend(Rank{1}, on_edge(3), lent);
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
    REQUIRE(arrival.wait_until(patience()));
    CHECK(arrives_whole(lent, arrival.get()));
  }
  CHECK(net.ranks[0]->lendable(0, at::kFloat).numel() == 0);
}

void a_quarter_of_a_gibibyte(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  CHECK(passes(net, at::arange(32 << 20, at::kLong), true));
  CHECK(eventually([&] { return net.ranks[1]->bytes_waiting() == 0; }));
}

}  // namespace

const std::vector<TransportCase>& tensor_cases() {
  static const std::vector<TransportCase> cases{
      {"every type arrives as sent", every_dtype},
      {"tensors that are not contiguous, or have no elements, arrive as sent", every_stride},
      {"tensors of 1 byte to 10 MiB arrive whole, asked for before or after (T-3)", every_size},
      {"lent tensors arrive whole, in lendable memory and elsewhere", lent_tensors},
      {"a tensor of 256 MiB arrives whole", a_quarter_of_a_gibibyte},
  };
  return cases;
}

}  // namespace stagecraft::conformance
