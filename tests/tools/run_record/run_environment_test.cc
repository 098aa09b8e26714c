/// Tests which variables of the environment get into the record of a run.
#include "stagecraft/tools/run_record/run_environment.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using OrderedJson = nlohmann::ordered_json;

const std::vector<const char*> kEnvironment{"AWS_SECRET_ACCESS_KEY=x",
                                            "MY_TOKEN=x",
                                            "GITHUB_TOKEN=x",
                                            "SLURM_JWT=x",
                                            "SLURM_JOB_ID_TOKEN=x",
                                            "STAGECRAFT"
                                            "_TOKEN=x",
                                            "STAGECRAFT_WATCH_LINK=x",
                                            "MY_OMP_NUM_THREADS=x",
                                            "HOME=x",
                                            "torn",
                                            "STAGECRAFT_HOSTS=hosts=2",
                                            "OMP_NUM_THREADS=4",
                                            "MKL_CBWR=AVX2",
                                            "ATEN_CPU_CAPABILITY=avx2",
                                            "CUDA_VISIBLE_DEVICES=0,1",
                                            "NCCL_DEBUG=",
                                            "SLURM_JOB_ID=7",
                                            "SLURM_STEP_ID=0",
                                            "JOB_COMPLETION_INDEX=2",
                                            nullptr};

TEST_CASE("a record keeps variables that change a run, and no others", "[tools][run]") {
  CHECK(tools::variables_of_run(kEnvironment.data()) == OrderedJson{{"STAGECRAFT_HOSTS", "hosts=2"},
                                                                    {"OMP_NUM_THREADS", "4"},
                                                                    {"MKL_CBWR", "AVX2"},
                                                                    {"ATEN_CPU_CAPABILITY", "avx2"},
                                                                    {"CUDA_VISIBLE_DEVICES", "0,1"},
                                                                    {"NCCL_DEBUG", ""}});
}

TEST_CASE("a record keeps variables that name its job, and no others", "[tools][run]") {
  CHECK(tools::variables_of_job(kEnvironment.data()) ==
        OrderedJson{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"JOB_COMPLETION_INDEX", "2"}});
}

}  // namespace
}  // namespace stagecraft::tests
