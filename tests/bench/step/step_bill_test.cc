/// Tests the arithmetic of `stagecraft_bench train_llama`: its figures must add up.
#include "stagecraft/bench/step/step_bill.h"

#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/bench/peer.h"
#include "stagecraft/bench/step/call_times.h"
#include "stagecraft/bench/step/self_times.h"
#include "stagecraft/bench/step/train_llama_options.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::bench {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("what is begun inside another has its time, and the other has not (SLF-1)",
          "[tools][bench]") {
  constexpr std::size_t kNode = 0, kProduct = 1, kAllocator = 2;
  SelfTimes times;
  times.begin(kNode, 100);
  times.begin(kProduct, 110);
  times.begin(kAllocator, 130);
  times.end(133);
  times.end(150);
  times.begin(kProduct, 160);
  times.end(170);
  times.end(200);
  times.begin(kAllocator, 300);  // belongs to no call
  times.end(301);
  CHECK(times.of(kNode) == 50);
  CHECK(times.of(kProduct) == 47);
  CHECK(times.of(kAllocator) == 4);
  times.clear();
  CHECK(times.of(kProduct) == 0);
}

TEST_CASE("operators have their part by their name, nodes of autograd the runtime's",
          "[tools][bench]") {
  CHECK(part_of("aten::mm") == Part::MatrixProducts);
  CHECK(part_of("aten::addmm") == Part::MatrixProducts);
  CHECK(part_of("aten::convolution_backward") == Part::MatrixProducts);
  CHECK(part_of("aten::mm_like") == Part::OtherOperators);
  CHECK(part_of("aten::_scaled_dot_product_flash_attention_for_cpu_backward") == Part::Attention);
  CHECK(part_of("aten::mul") == Part::OtherOperators);
  CHECK(part_of("autograd::engine::evaluate_function: MmBackward0") == Part::Runtime);
  CHECK(part_of("MmBackward0") == Part::Runtime);
}

TEST_CASE("an operator's time is without what it calls and what is allocated", "[tools][bench]") {
  CallTimes times;
  times.begin("SiluBackward0", 0);
  times.begin("aten::add", 10);
  times.begin("aten::fill_", 12);
  times.begin_allocator(13);
  times.end(14);
  times.end(16);
  times.end(20);
  times.begin("aten::mm", 30);
  times.begin("aten::add", 31);  // belongs to the product
  times.end(33);
  times.end(40);
  times.end(50);
  times.begin("aten::add", 60);
  times.end(65);
  std::map<std::string, CallTime> by_name;
  for (const CallTime& call : times.take()) {
    by_name[call.name] = call;
  }
  const auto nanoseconds = [&](const char* name) { return by_name.at(name).seconds * 1e9; };
  CHECK(nanoseconds("SiluBackward0") == Approx(30));
  CHECK(by_name.at("SiluBackward0").calls == 1);
  CHECK(nanoseconds("allocator") == Approx(1));
  CHECK(nanoseconds("aten::fill_") == Approx(3));
  CHECK(nanoseconds("aten::mm") == Approx(8));
  CHECK(nanoseconds("aten::add") == Approx(13));
  CHECK(by_name.at("aten::add").calls == 3);
  for (const CallTime& call : times.take()) {
    CHECK(call.seconds == 0.0);
    CHECK(call.calls == 0);
  }
}

TEST_CASE("what nobody claims of a step is the runtime's (SB-1)", "[tools][bench]") {
  PartSeconds known;
  known[Part::MatrixProducts] = 0.5;
  known[Part::Waiting] = 0.25;
  const PartSeconds parts = parted(1.0, known);
  CHECK(parts[Part::Runtime] == Approx(0.25));
  CHECK(parts.sum() == Approx(1.0));

  known[Part::Waiting] = 0.6;
  CHECK_THROWS_AS(parted(1.0, known), std::invalid_argument);
  CHECK_THROWS_AS(parted(2.0, parts), std::invalid_argument);  // its runtime is known already
}

TEST_CASE("a bill has the mean of its steps, by rank and in all", "[tools][bench]") {
  const auto of = [](double products, double step) {
    PartSeconds known;
    known[Part::MatrixProducts] = products;
    return parted(step, known);
  };
  StepBill bill;
  bill.add({of(0.1, 0.4), of(0.3, 0.4)});
  bill.add({of(0.2, 0.6), of(0.5, 0.6)});
  CHECK(bill.ranks() == 2);
  CHECK(bill.step() == Approx(0.5));
  CHECK(bill.of(0)[Part::MatrixProducts] == Approx(0.15));
  CHECK(bill.of(1)[Part::MatrixProducts] == Approx(0.4));
  CHECK(bill.in_all()[Part::MatrixProducts] == Approx(0.55));
  CHECK(bill.in_all().sum() == Approx(1.0));

  CHECK(table_of(bill) ==
        "  ms a step                   rank 0            rank 1            in all\n"
        "  matrix products      150.0  30.0 %     400.0  80.0 %     550.0  55.0 %\n"
        "  attention              0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  other operators        0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  allocator              0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  accumulate             0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  update                 0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  runtime              350.0  70.0 %     100.0  20.0 %     450.0  45.0 %\n"
        "  waiting                0.0   0.0 %       0.0   0.0 %       0.0   0.0 %\n"
        "  step                 500.0 100.0 %     500.0 100.0 %    1000.0 100.0 %\n");
  CHECK_THAT(shares_of(bill), ContainsSubstring("matrix products 55.0 %, attention 0.0 %"));
}

TEST_CASE("a bill of one rank has no sum beside it", "[tools][bench]") {
  StepBill bill;
  bill.add({parted(0.1, {})});
  CHECK_THAT(table_of(bill), !ContainsSubstring("in all"));
}

TEST_CASE("the peer's median is read from what it prints", "[tools][bench]") {
  CHECK(parse_median_step("torch 2.11\n  median step 1234.5 ms   min 1 ms\n") == Approx(1.2345));
  for (const char* printed : {"", "median step", "median step x ms", "median step 12 s"}) {
    CAPTURE(printed);
    CHECK_THROWS_AS(parse_median_step(printed), std::runtime_error);
  }
}

TrainLlamaOptions options_of(const std::vector<std::string>& words) {
  return std::get<TrainLlamaOptions>(parse_train_llama_options(words));
}

std::string refusal_of(const std::vector<std::string>& words) {
  try {
    (void)parse_train_llama_options(words);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::UsageArgument);
    return error.what();
  }
  return "";
}

TEST_CASE("train_llama reads its options", "[tools][bench]") {
  CHECK(options_of({}).dims == std::vector<std::int64_t>{256, 512});
  CHECK_FALSE(options_of({}).peer);
  const TrainLlamaOptions options = options_of({"--measure",
                                                "bill",
                                                "--models=llama,vit",
                                                "--dims",
                                                "512",
                                                "--threads",
                                                "2",
                                                "--workers",
                                                "processes",
                                                "--peer",
                                                "python",
                                                "--peer-script",
                                                "peer.py",
                                                "--json"});
  CHECK(options.measures == std::vector<std::string>{"bill"});
  CHECK(options.models == std::vector<std::string>{"llama", "vit"});
  CHECK(options.dims == std::vector<std::int64_t>{512});
  CHECK(options.threads == std::vector<int>{2});
  CHECK(options.processes);
  CHECK(options.json);
  REQUIRE(options.peer);
  CHECK(options.peer->script == "peer.py");
  CHECK(std::holds_alternative<std::string>(parse_train_llama_options({"--help"})));
}

TEST_CASE("train_llama refuses what makes no sense in a sentence", "[tools][bench]") {
  CHECK_THAT(refusal_of({"--measures", "bill"}), ContainsSubstring("did you mean --measure"));
  CHECK_THAT(refusal_of({"--measure", "all"}), ContainsSubstring("--measure"));
  CHECK_THAT(refusal_of({"--dims", "100"}), ContainsSubstring("expects multiples of 16"));
  CHECK_THAT(refusal_of({"--threads", "0"}), ContainsSubstring("--threads"));
  CHECK_THAT(refusal_of({"--peer", "python"}), ContainsSubstring("--peer-script"));
  CHECK_THAT(refusal_of({"bill"}), ContainsSubstring("found 'bill'"));
}

}  // namespace
}  // namespace stagecraft::bench
