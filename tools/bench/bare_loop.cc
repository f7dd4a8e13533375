// The benchmark's job as a hand-written LibTorch loop, with the same fused optimizer and the same gather of a batch
// that Gantry uses: the floor that the framework is measured against. Not tuned for anything else.
//
// usage: bare_loop mlp|cnn EPOCHS      Prints one line: images per second.
#include <ATen/ops/_fused_sgd.h>
#include <malloc.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

torch::nn::Sequential make_model(const std::string& kind) {
  using namespace torch::nn;
  if (kind == "mlp") return Sequential(Flatten(), Linear(784, 256), ReLU(), Linear(256, 10));
  return Sequential(Conv2d(Conv2dOptions(1, 16, 3).padding(1)), BatchNorm2d(16), ReLU(), MaxPool2d(2),
                    Conv2d(Conv2dOptions(16, 32, 3).padding(1)), BatchNorm2d(32), ReLU(), MaxPool2d(2), Flatten(),
                    Linear(1568, 10));
}

/// An IDX file's values. Real data: on noise units die, and what is left of their momentum becomes denormal and
/// slow.
at::Tensor read(const std::string& name, int64_t header, at::IntArrayRef shape) {
  const char* folder = std::getenv("FASHION_MNIST");
  const std::string path = std::string(folder != nullptr ? folder : "/usr/share/datasets/fashion-mnist") + "/" + name;
  FILE* in = popen(("zcat '" + path + "'").c_str(), "r");
  at::Tensor all = torch::empty({header + c10::multiply_integers(shape)}, torch::kUInt8);
  const auto size = static_cast<std::size_t>(all.numel());
  if (in == nullptr || std::fread(all.data_ptr(), 1, size, in) != size) {
    std::fprintf(stderr, "bare_loop: cannot read %s: apt-get install dataset-fashion-mnist, or set FASHION_MNIST\n",
                 path.c_str());
    std::exit(1);
  }
  pclose(in);
  return all.narrow(0, header, size - header).reshape(shape).clone();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: bare_loop mlp|cnn EPOCHS\n"), 2;
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as gantry does
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
  torch::manual_seed(2023);
  const int64_t count = 60000, batch = 128, size = 28 * 28;
  const at::Tensor images = read("train-images-idx3-ubyte.gz", 16, {count, 1, 28, 28});
  const at::Tensor labels = read("train-labels-idx1-ubyte.gz", 8, {count}).to(torch::kInt64);
  float table[256];
  for (int i = 0; i < 256; ++i) table[i] = (static_cast<float>(i) / 255 - 0.2860f) / 0.3530f;
  torch::nn::Sequential model = make_model(argv[1]);
  std::vector<at::Tensor> parameters = model->parameters(), momenta, gradients;
  for (const at::Tensor& p : parameters) momenta.push_back(torch::zeros_like(p));

  const auto start = std::chrono::steady_clock::now();
  const int epochs = std::atoi(argv[2]);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor order = torch::randperm(count);
    const auto* ids = order.const_data_ptr<int64_t>();
    const auto* bytes = images.const_data_ptr<uint8_t>();
    const auto* targets = labels.const_data_ptr<int64_t>();
    for (int64_t first = 0; first < count; first += batch) {
      const int64_t n = std::min(batch, count - first);
      at::Tensor x = at::empty({n, 1, 28, 28}), y = at::empty({n}, torch::kInt64);
      auto* to = x.mutable_data_ptr<float>();
      for (int64_t i = 0; i < n; ++i) {
        const uint8_t* from = bytes + ids[first + i] * size;
        if (i + 1 < n)
          for (int64_t k = 0; k < size; k += 64) __builtin_prefetch(bytes + ids[first + i + 1] * size + k);
        for (int64_t k = 0; k < size; ++k) *to++ = table[from[k]];
        y.mutable_data_ptr<int64_t>()[i] = targets[ids[first + i]];
      }
      at::cross_entropy_loss(model->forward(x), y).backward();
      torch::NoGradGuard no_grad;
      gradients.clear();
      for (const at::Tensor& p : parameters) gradients.push_back(p.grad());
      at::_fused_sgd_(parameters, gradients, momenta, 0, 0.9, 0.05, 0, false, false, epoch == 0 && first == 0);
      for (at::Tensor& p : parameters) p.mutable_grad().reset();
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.0f\n", static_cast<double>(count * epochs) / seconds);
}
