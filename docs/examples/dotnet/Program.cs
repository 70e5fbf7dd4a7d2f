var builder = WebApplication.CreateBuilder(args);
var app = builder.Build();
app.MapGet("/", () => Directory.GetFiles(builder.Configuration["data"] ?? "."));
app.Run();
