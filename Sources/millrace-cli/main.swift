print("millrace")
